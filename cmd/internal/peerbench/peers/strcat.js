(function (n) {
  var s = "";
  for (var i = n; i > 0; i--) s += i % 2 === 0 ? "ab" : "cde";
  return s.length;
})
