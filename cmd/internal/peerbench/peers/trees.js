(function () {
  function build(d, i) {
    return d === 0 ? i : { fst: build(d - 1, i * 2), snd: build(d - 1, i * 2 + 1) };
  }
  function sum(d, t) {
    return d === 0 ? t : sum(d - 1, t.fst) + sum(d - 1, t.snd);
  }
  return function (n) { return sum(n, build(n, 1)); };
})()
