(function () {
  function fold(f, acc, xs) {
    for (var i = 0, n = xs.length; i < n; i++) acc = f(acc, xs[i]);
    return acc;
  }
  function map(f, xs) {
    var out = [];
    for (var i = 0, n = xs.length; i < n; i++) out[i] = f(xs[i]);
    return out;
  }
  function filter(f, xs) {
    var out = [], k = 0;
    for (var i = 0, n = xs.length; i < n; i++) { var x = xs[i]; if (f(x)) out[k++] = x; }
    return out;
  }
  function scale(k) { return function (x) { return x * k; }; }
  function shift(k) { return function (x) { return x + k; }; }
  function keep(k) { return function (x) { return x % k !== 0; }; }
  return function (n) {
    var xs = [];
    for (var i = 0; i < n; i++) xs[i] = i + 1;
    return fold(function (a, x) { return (a * 7 + x) % 1000003; }, 0,
      map(shift(5), filter(keep(4), map(scale(3), xs))));
  };
})()
