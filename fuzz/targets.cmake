# Every fuzz target, in alphabetical order.
