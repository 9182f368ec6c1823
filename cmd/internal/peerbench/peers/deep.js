(function () {
  function deep(n) { return n === 0 ? 0 : n + deep(n - 1); }
  return deep;
})()
