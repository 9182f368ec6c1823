(function () {
  function fold(f, acc, xs) {
    for (var i = 0, n = xs.length; i < n; i++) acc = f(acc, xs[i]);
    return acc;
  }
  function safe(c, d, qs) {
    if (qs === null) return true;
    var q = qs.head;
    if (q === c || q === c + d || q === c - d) return false;
    return safe(c, d + 1, qs.tail);
  }
  function solve(k, qs, cols) {
    if (k === 0) return 1;
    return fold(function (acc, c) {
      return safe(c, 1, qs) ? acc + solve(k - 1, { head: c, tail: qs }, cols) : acc;
    }, 0, cols);
  }
  return function (n) {
    var cols = [];
    for (var i = 0; i < n; i++) cols[i] = i + 1;
    return solve(n, null, cols);
  };
})()
