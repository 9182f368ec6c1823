(function () {
  function tak(x, y, z) {
    return !(y < x) ? z : tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
  }
  return function (n) { return tak(n, n - 6, n - 12); };
})()
