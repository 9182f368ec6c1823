(function () {
  function even(n) { return n === 0 ? 1 : odd(n - 1); }
  function odd(n) { return n === 0 ? 0 : even(n - 1); }
  return function (n) {
    var acc = 0;
    for (var i = n; i > 0; i--) acc += even(i);
    return acc;
  };
})()
