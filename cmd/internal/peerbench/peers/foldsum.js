(function () {
  function fold(f, acc, xs) {
    for (var i = 0, n = xs.length; i < n; i++) acc = f(acc, xs[i]);
    return acc;
  }
  function upto(n) {
    var xs = [];
    for (var i = 0; i < n; i++) xs[i] = i + 1;
    return xs;
  }
  return function (n) { return fold(function (a, x) { return a + x; }, 0, upto(n)); };
})()
