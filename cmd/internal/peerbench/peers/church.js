(function () {
  function zero(f) { return function (x) { return x; }; }
  function succ(m) {
    return function (f) { return function (x) { return f(m(f)(x)); }; };
  }
  function num(k) { return k === 0 ? zero : succ(num(k - 1)); }
  function mult(a, b) { return function (f) { return a(b(f)); }; }
  function inc(i) { return i + 1; }
  function count(m) { return m(inc)(0); }
  return function (n) {
    var c = num(n);
    return count(c(num(3))) + count(mult(c, c));
  };
})()
