(function () {
  function fold(f, acc, xs, from) {
    for (var i = from, n = xs.length; i < n; i++) acc = f(acc, xs[i]);
    return acc;
  }
  function push(xs, x) { xs[xs.length] = x; return xs; }
  function random(n) {
    var xs = [], s = 42;
    for (var i = 0; i < n; i++) { s = (s * 4096 + 150889) % 714025; xs[i] = s; }
    return xs;
  }
  function qs(xs) {
    if (xs.length === 0) return xs;
    var pv = xs[0];
    var q = fold(function (a, x) {
      var side = x < pv ? a[0] : a[1];
      side[side.length] = x;
      return a;
    }, [[], []], xs, 1);
    var low = qs(q[0]);
    low[low.length] = pv;
    return fold(push, low, qs(q[1]), 0);
  }
  return function (n) {
    return fold(function (a, x) { return (a * 31 + x) % 1000003; }, 0, qs(random(n)), 0);
  };
})()
