// Sums and differences of multiples of the granule are multiples of it, proved in single steps: z3 does not decide products.
include "block_pool_model.dfy"

lemma multiples(a: nat, b: nat, granule: nat)
  requires granule > 0 && on_granule(a, granule) && on_granule(b, granule)
  ensures on_granule(a + b, granule)
  ensures a <= b ==> on_granule(b - a, granule)
{
  reveal on_granule();
  var k, l := a / granule, b / granule;
  distributes(k, l, granule);
  multiple(k + l, granule);
  if a <= b {
    if l < k { at_least_once(k - l, granule); distributes(k - l, l, granule); }
    distributes(l - k, k, granule);
    multiple(l - k, granule);
  }
}

lemma multiple(k: nat, granule: nat)
  requires granule > 0
  ensures (k * granule) % granule == 0
{
  var q := (k * granule) / granule;
  if q < k { at_least_once(k - q, granule); distributes(k - q, q, granule); }
  if q > k { at_least_once(q - k, granule); distributes(q - k, k, granule); }
}

lemma distributes(k: int, l: int, granule: nat)
  ensures (k + l) * granule == k * granule + l * granule
{
}

lemma at_least_once(k: nat, granule: nat)
  requires k > 0
  ensures k * granule >= granule
{
  if k > 1 { at_least_once(k - 1, granule); distributes(k - 1, 1, granule); }
}
