(function () {
  function filter(f, xs, from) {
    var out = [], k = 0;
    for (var i = from, n = xs.length; i < n; i++) { var x = xs[i]; if (f(x)) out[k++] = x; }
    return out;
  }
  function sieve(n, xs, c) {
    if (xs.length === 0) return c;
    var h = xs[0];
    if (h * h > n) return c + xs.length;
    return sieve(n, filter(function (x) { return x % h !== 0; }, xs, 1), c + 1);
  }
  return function (n) {
    var xs = [];
    for (var i = 0; i < n - 1; i++) xs[i] = i + 2;
    return sieve(n, xs, 0);
  };
})()
