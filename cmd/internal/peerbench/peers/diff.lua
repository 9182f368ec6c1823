local max = math.max
return function(n)
  local a, b, rows = {}, {}, {}
  for i = 1, n do
    a[i] = "line " .. (i - 1) * 7 % 50
    b[i] = "line " .. (i - 1) * 11 % 60
  end
  rows[0] = {}
  for j = 0, n do rows[0][j] = 0 end
  for i = 1, n do
    local x, prev, row = a[i], rows[i - 1], {}
    row[0] = 0
    for j = 1, n do row[j] = x == b[j] and prev[j - 1] + 1 or max(row[j - 1], prev[j]) end
    rows[i] = row
  end
  local back, i, j = {}, n, n
  while i > 0 or j > 0 do
    if i > 0 and j > 0 and a[i] == b[j] then
      back[#back + 1] = "  " .. a[i]
      i, j = i - 1, j - 1
    elseif j > 0 and (i == 0 or rows[i][j - 1] >= rows[i - 1][j]) then
      back[#back + 1] = "+ " .. b[j]
      j = j - 1
    else
      back[#back + 1] = "- " .. a[i]
      i = i - 1
    end
  end
  local out, m = {}, #back
  for k = 1, m do out[k] = back[m - k + 1] end
  return #table.concat(out, "\n") * 1000 + rows[n][n]
end
