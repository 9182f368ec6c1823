(function () {
  function steps(k) {
    var c = 1;
    while (k !== 1) { k = k % 2 === 0 ? k / 2 : k * 3 + 1; c++; }
    return c;
  }
  return function (n) {
    var best = 0, bi = 0;
    for (var i = 1; i < n; i++) {
      var s = steps(i);
      if (s > best) { best = s; bi = i; }
    }
    return bi * 1000 + best;
  };
})()
