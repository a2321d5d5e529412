"""Models with random weights, of the sizes that a CPU trains in a test: a GPT-2 block stack, a ResNet, an LSTM whose
sequences have varying lengths. Each is a function of the seed that makes a step: a function of the step's number that trains
once and returns the loss."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A GPT-2 block: causal attention and a feed-forward network, each behind a layer norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width / self.heads) ** 0.5
        mask = torch.full((length, length), float("-inf")).triu(1)
        attended = (torch.softmax(scores + mask, -1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Gpt2(nn.Module):
    def __init__(self, layers=4, width=192, heads=6, words=1000, length=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    """A basic block of a ResNet."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv_1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv_2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = functional.relu(self.norm_1(self.conv_1(x)))
        return functional.relu(self.norm_2(self.conv_2(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18's shape at a quarter of its width, for pictures of 32 x 32."""

    def __init__(self, width=16):
        super().__init__()
        blocks, inside = [], width
        for stage, stride in enumerate((1, 2, 2, 2)):
            for i in range(2):
                blocks.append(Residual(inside, width << stage, stride if i == 0 else 1))
                inside = width << stage
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inside, 10)

    def forward(self, x):
        return self.head(self.blocks(self.first(x)).mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self, words=500, width=128):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


def _step_of(model, batch_of):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def run(number):
        inputs, targets = batch_of(number)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(inputs)
        loss = functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return run


def _ids(number, rows, length, words):
    made = torch.Generator().manual_seed(number)
    ids = torch.randint(words, (rows, length + 1), generator=made)
    return ids[:, :-1], ids[:, 1:]


def gpt2():
    return _step_of(Gpt2(), lambda number: _ids(number, 8, 128, 1000))


def resnet():
    def batch(number):
        made = torch.Generator().manual_seed(number)
        return torch.randn(32, 3, 32, 32, generator=made), torch.randint(10, (32,), generator=made)

    return _step_of(ResNet(), batch)


def lstm():
    """Every step has sequences of another length, so most allocations differ from the recorded step's."""
    return _step_of(Lstm(), lambda number: _ids(number, 16, 24 + 8 * (number * 7 % 5), 500))


def lstm_padded():
    """The same with sequences padded to one length."""
    return _step_of(Lstm(), lambda number: _ids(number, 16, 56, 500))


MODELS = {"gpt2": gpt2, "resnet": resnet, "lstm": lstm, "lstm_padded": lstm_padded}
