(function () {
  function comp(f, g) { return function (x) { return f(g(x)); }; }
  function inc(i) { return i + 1; }
  return function (n) {
    var acc = function (x) { return x; };
    for (var i = n; i > 0; i--) acc = comp(inc, acc);
    return acc(0);
  };
})()
