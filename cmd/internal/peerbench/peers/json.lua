-- Lua has no JSON: this is what its users take along.
local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}
local function encode(v, out)
  local t = type(v)
  if t == "string" then
    out[#out + 1] = '"' .. string.gsub(v, '[%c"\\]', escapes) .. '"'
  elseif t ~= "table" then
    out[#out + 1] = tostring(v)
  elseif v[1] ~= nil then
    for i, x in ipairs(v) do
      out[#out + 1] = i == 1 and "[" or ","
      encode(x, out)
    end
    out[#out + 1] = "]"
  else
    local sep = "{"
    for k, x in pairs(v) do
      out[#out + 1] = sep .. '"' .. k .. '":'
      encode(x, out)
      sep = ","
    end
    out[#out + 1] = "}"
  end
  return out
end
local unescapes = {n = "\n", r = "\r", t = "\t", b = "\b", f = "\f"}
local byte, find, sub = string.byte, string.find, string.sub
local function skip(s, i) return find(s, "[^ \n\r\t]", i) end
local function str(s, i)
  local e = find(s, '["\\]', i)
  if byte(s, e) == 34 then return sub(s, i, e - 1), e + 1 end
  while byte(s, e) ~= 34 do e = find(s, '["\\]', e + 2) end
  return (string.gsub(sub(s, i, e - 1), "\\(.)", function(c) return unescapes[c] or c end)), e + 1
end
local function decode(s, i)
  i = skip(s, i)
  local c = byte(s, i)
  if c == 34 then return str(s, i + 1) end
  if c == 123 then
    local out = {}
    i = skip(s, i + 1)
    while byte(s, i) ~= 125 do
      local k
      k, i = str(s, i + 1)
      out[k], i = decode(s, skip(s, i) + 1)
      i = skip(s, i)
      if byte(s, i) == 44 then i = skip(s, i + 1) end
    end
    return out, i + 1
  end
  if c == 91 then
    local out = {}
    i = skip(s, i + 1)
    while byte(s, i) ~= 93 do
      out[#out + 1], i = decode(s, i)
      i = skip(s, i)
      if byte(s, i) == 44 then i = i + 1 end
    end
    return out, i + 1
  end
  if c == 116 then return true, i + 4 end
  if c == 102 then return false, i + 5 end
  local _, e = find(s, "^[%-0-9.eE+]+", i)
  return tonumber(sub(s, i, e)), e + 1
end
return function(n)
  local items, kept, sum = {}, {}, 0
  for i = 0, n - 1 do
    items[i + 1] = {id = i, name = "item " .. i, tags = {"new", 'a "b"\n'}, price = 5 + i % 100, on = i % 2 == 0}
  end
  local text = table.concat(encode({items = items}, {}))
  local doc = decode(text, 1)
  for _, x in ipairs(doc.items) do
    if x.on then
      local y = {}
      for k, v in pairs(x) do y[k] = v end
      y.price = x.price + 1
      kept[#kept + 1] = y
    end
    sum = sum + x.price
  end
  local out = {}
  for k, v in pairs(doc) do out[k] = v end
  out.items = kept
  return #text + #table.concat(encode(out, {})) + sum
end
