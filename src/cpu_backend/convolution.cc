#include <algorithm>
#include <limits>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {
namespace {

/// Windows over an image, as IM2COL's numbers have them. A one-dimensional image [steps, channels, n] is
/// one row high.
struct Windows {
  bool is_flat;
  std::int64_t stride[2], pad[2], dilation[2];
  std::int64_t width, height;  // of the kernel
  std::uint64_t channels;

  Windows(const KernelCall& call, const graph::Shape& kernel)
      : is_flat(call.number(6) == 1),
        stride{call.number(0), is_flat ? 1 : call.number(1)},
        pad{call.number(2), is_flat ? 0 : call.number(3)},
        dilation{call.number(4), is_flat ? 1 : call.number(5)},
        width(static_cast<std::int64_t>(kernel[0])),
        height(is_flat ? 1 : static_cast<std::int64_t>(kernel[1])),
        channels(kernel[is_flat ? 1 : 2]) {}
};

/// An image's sides and pixels, flat or not.
struct Image {
  const Operand& operand;
  bool is_flat;

  std::int64_t width() const { return static_cast<std::int64_t>(operand.extent(0)); }
  std::int64_t height() const { return is_flat ? 1 : static_cast<std::int64_t>(operand.extent(1)); }
  float at(std::int64_t x, std::int64_t y, std::uint64_t channel, std::uint64_t n) const {
    const auto column = static_cast<std::uint64_t>(x), line = static_cast<std::uint64_t>(y);
    return is_flat ? read_element(operand, column, channel, n, 0)
                   : read_element(operand, column, line, channel, n);
  }
};

/// The pixel of an output step and a place in the window.
std::int64_t pixel(const Windows& windows, int side, std::uint64_t step, std::int64_t place) {
  return static_cast<std::int64_t>(step) * windows.stride[side] - windows.pad[side] +
         place * windows.dilation[side];
}

}  // namespace

// A unit is a patch: a row of the result.
Status im2col_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch) {
  const Windows windows(call, call.in[0].tensor->shape);
  const Image image{call.in[1], windows.is_flat};
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const std::uint64_t n = windows.is_flat ? at.i2 : at.i3;
    const std::uint64_t line = windows.is_flat ? 0 : at.i2;
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    std::uint64_t k = 0;
    for (std::uint64_t channel = 0; channel < windows.channels; ++channel) {
      for (std::int64_t y = 0; y < windows.height; ++y) {
        const std::int64_t from_y = pixel(windows, 1, line, y);
        for (std::int64_t x = 0; x < windows.width; ++x, ++k) {
          const std::int64_t from_x = pixel(windows, 0, at.i1, x);
          const bool is_inside =
              from_x >= 0 && from_x < image.width() && from_y >= 0 && from_y < image.height();
          out[k] = is_inside ? image.at(from_x, from_y, channel, n) : 0.0f;
        }
      }
    }
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

// A unit is a line of the image: each pixel gathers from the patches that it is in.
Status im2col_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch) {
  const Windows windows(call, call.in[1].tensor->shape);
  const Operand& patches = call.in[0];
  const std::uint64_t steps_x = patches.extent(1);
  const std::uint64_t steps_y = windows.is_flat ? 1 : patches.extent(2);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const auto line = static_cast<std::int64_t>(windows.is_flat ? 0 : at.i1);
    const std::uint64_t channel = windows.is_flat ? at.i1 : at.i2;
    const std::uint64_t n = windows.is_flat ? at.i2 : at.i3;
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    std::fill(out, out + call.out.extent(0), 0.0f);
    for (std::uint64_t step_y = 0; step_y < steps_y; ++step_y) {
      for (std::int64_t y = 0; y < windows.height; ++y) {
        if (pixel(windows, 1, step_y, y) != line) continue;
        for (std::uint64_t step_x = 0; step_x < steps_x; ++step_x) {
          for (std::int64_t x = 0; x < windows.width; ++x) {
            const std::int64_t to_x = pixel(windows, 0, step_x, x);
            if (to_x < 0 || to_x >= static_cast<std::int64_t>(call.out.extent(0))) continue;
            const auto place = static_cast<std::int64_t>(channel) * windows.height + y;
            const auto k = static_cast<std::uint64_t>(place * windows.width + x);
            out[to_x] += windows.is_flat ? read_element(patches, k, step_x, n, 0)
                                         : read_element(patches, k, step_x, step_y, n);
          }
        }
      }
    }
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

namespace {

/// The pixels of a pool's window that are in the image: [begin, end) along one side.
struct Span {
  std::int64_t begin, end;
  Span(const KernelCall& call, int side, std::uint64_t step, std::uint64_t size) {
    const auto k = static_cast<std::size_t>(side);
    const std::int64_t first = static_cast<std::int64_t>(step) * call.number(3 + k) -
                               static_cast<std::int64_t>(call.number(5 + k));
    begin = std::max<std::int64_t>(first, 0);
    end = std::min<std::int64_t>(first + call.number(1 + k), static_cast<std::int64_t>(size));
  }
};

float window_size(const KernelCall& call) {
  return static_cast<float>(call.number(1)) * static_cast<float>(call.number(2));
}

float pooled(const KernelCall& call, const Operand& image, const Span& across, const Span& down,
             std::uint64_t i2, std::uint64_t i3) {
  const bool is_mean = call.number(0) == 1;
  float value = is_mean ? 0.0f : -std::numeric_limits<float>::infinity();
  for (std::int64_t y = down.begin; y < down.end; ++y) {
    for (std::int64_t x = across.begin; x < across.end; ++x) {
      const float pixel_value =
          read_element(image, static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y), i2, i3);
      value = is_mean ? value + pixel_value : std::max(value, pixel_value);
    }
  }
  return is_mean ? value / window_size(call) : value;
}

/// Adds a gradient to the window's pixels: to all, or to the first that has the maximum.
void spread(const KernelCall& call, const Span& across, const Span& down, std::uint64_t i2,
            std::uint64_t i3, float gradient, std::vector<float>& plane) {
  const Operand& image = call.in[1];
  const auto width = static_cast<std::int64_t>(call.out.extent(0));
  const bool is_mean = call.number(0) == 1;
  std::int64_t best = -1;
  float most = 0;
  for (std::int64_t y = down.begin; y < down.end; ++y) {
    for (std::int64_t x = across.begin; x < across.end; ++x) {
      if (is_mean) {
        plane[static_cast<std::size_t>(y * width + x)] += gradient / window_size(call);
        continue;
      }
      const float value =
          read_element(image, static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y), i2, i3);
      if (best >= 0 && !(value > most)) continue;
      most = value;
      best = y * width + x;
    }
  }
  if (best >= 0) plane[static_cast<std::size_t>(best)] += gradient;
}

}  // namespace

Status pool_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const Operand& image = call.in[0];
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const Span down(call, 1, at.i1, image.extent(1));
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k)
      out[k] = pooled(call, image, Span(call, 0, k, image.extent(0)), down, at.i2, at.i3);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

std::uint64_t plane_units(const KernelCall& call) {
  return call.out.extent(2) * call.out.extent(3);
}

// A unit is a plane of the image, because windows overlap.
Status pool_back_planes(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch) {
  const Operand& gradients = call.in[0];
  const std::uint64_t width = call.out.extent(0), height = call.out.extent(1);
  for (std::uint64_t unit = begin; unit < end; ++unit) {
    const std::uint64_t i2 = unit % call.out.extent(2), i3 = unit / call.out.extent(2);
    scratch.b.assign(width * height, 0.0f);
    for (std::uint64_t y = 0; y < gradients.extent(1); ++y) {
      for (std::uint64_t x = 0; x < gradients.extent(0); ++x) {
        spread(call, Span(call, 0, x, width), Span(call, 1, y, height), i2, i3,
               read_element(gradients, x, y, i2, i3), scratch.b);
      }
    }
    for (std::uint64_t y = 0; y < height; ++y) {
      float* const out = row_to_write(call.out, y, i2, i3, scratch.c);
      std::copy_n(scratch.b.data() + y * width, width, out);
      write_row(call.out, y, i2, i3, out);
    }
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
