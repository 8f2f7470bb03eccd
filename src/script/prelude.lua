-- What scripts see. Runs once in a fresh state, with the standard library as its globals, and returns what the engine
-- needs. `host` holds the functions that the server gives, `libraries` the tables that become globals, `for_functions`
-- tells the state of libraries from that of EVAL.
--
-- This Lua has no read-only tables, so that nothing a script can name is the real thing: each shared table is an empty
-- stand-in whose metatable reads the real one and refuses writes. The raw functions, which would go around a metatable,
-- are exchanged for ones that know the stand-ins. Only `table.insert` and its kind still reach an empty stand-in; what
-- they leave there `sweep` takes away.
local host, libraries, for_functions = ...

local error, getmetatable, next, rawget, rawset, select, setmetatable, tostring, type =
      error, getmetatable, next, rawget, rawset, select, setmetatable, tostring, type
local tonumber, unpack = tonumber, unpack
local pcall, xpcall, load, loadstring = pcall, xpcall, load, loadstring
local resume = coroutine.resume
local byte, find, gsub, sub = string.byte, string.find, string.gsub, string.sub
local caught_value, where = host.caught_value, host.where

local READONLY = 'Attempt to modify a readonly table'
-- Kept here so that a chunk's name is never collected while the chunk is parsed.
local EVAL_NAME, FUNCTION_NAME, LOAD_NAME = '@user_script', '@user_function', '=(load)'

-- Stand-ins to real tables.
local real = {}

local function refuse()
  error(READONLY, 2)
end

local function stand_in(table, metatable)
  local access = {__index = table, __newindex = refuse, __metatable = metatable or false}
  local face = setmetatable({}, access)
  real[face] = table
  return face, access
end

-- Raises the error of a function that was not given a table, in the name of the caller's caller.
local function expect_table(name, value)
  error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(value) .. ")", 3)
end

---------------------------------------------------------------------------------------------------------- globals

local globals = {}
for _, name in next, {'_VERSION', 'assert', 'collectgarbage', 'error', 'gcinfo', 'ipairs', 'rawequal', 'select',
                      'tonumber', 'tostring', 'type'} do
  globals[name] = _G[name]
end

local function missing(_, name)
  if type(name) ~= 'string' and type(name) ~= 'number' then
    error('Second argument to luaProtectedTableError must be a string or number', 2)
  end
  error("Script attempted to access nonexistent global variable '" .. name .. "'", 2)
end

setmetatable(globals, {__index = missing})
local env, env_access = stand_in(globals, (stand_in({__index = missing})))
globals._G = env

------------------------------------------------------------------------------------------- functions that are careful

local function next_of_any(table, key)
  return next(real[table] or table, key)
end

function globals.next(table, key)
  if type(table) ~= 'table' then expect_table('next', table) end
  return next(real[table] or table, key)
end

function globals.pairs(table)
  if type(table) ~= 'table' then expect_table('pairs', table) end
  if real[table] then return next_of_any, table, nil end
  return next, table, nil
end

function globals.rawget(table, key)
  if type(table) ~= 'table' then expect_table('rawget', table) end
  return rawget(real[table] or table, key)
end

function globals.rawset(table, key, value)
  if type(table) ~= 'table' then expect_table('rawset', table) end
  if real[table] then error(READONLY, 0) end
  return rawset(table, key, value)
end

function globals.setmetatable(table, metatable)
  if type(table) ~= 'table' then expect_table('setmetatable', table) end
  if metatable ~= nil and type(metatable) ~= 'table' then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  end
  if real[table] then error(READONLY, 0) end
  if getmetatable(table) ~= nil then
    -- It may be protected, which is to be said in the caller's name.
    local ok, text = pcall(setmetatable, table, metatable)
    if not ok then error(text, 2) end
    return table
  end
  return setmetatable(table, metatable)
end

function globals.getmetatable(...)
  local metatable = getmetatable(...)
  -- A stand-in for a table without a metatable has none either.
  if metatable == false and real[(...)] then return nil end
  return metatable
end

-- An end of a range that is unpacked.
local function bound(number, given, default)
  if given == nil then return default end
  return tonumber(given) or
      error('bad argument #' .. number .. " to 'unpack' (number expected, got " .. type(given) .. ')', 3)
end

-- Lua 5.1's own counts in 32 bits, and crashes when that overflows. The limit is that of its stack.
function globals.unpack(table, first, last)
  if type(table) ~= 'table' then expect_table('unpack', table) end
  if first == nil and last == nil then return unpack(table) end
  local from, to = bound(2, first, 1), bound(3, last, #table)
  if not (to - from < 8000) then error('too many results to unpack', 2) end
  return unpack(table, from, to)
end

-- Compiled code is refused: it could do anything. A blank before it makes the parser see it as text.
local function as_text(piece)
  if type(piece) == 'string' and byte(piece) == 27 then return ' ' .. piece end
  return piece
end

function globals.loadstring(text, name)
  if type(text) ~= 'string' and type(text) ~= 'number' then
    error("bad argument #1 to 'loadstring' (string expected, got " .. type(text) .. ")", 2)
  end
  if type(text) == 'string' and byte(text) == 27 then return loadstring(' ' .. text, name or text) end
  return loadstring(text, name)
end

function globals.load(reader, name)
  if type(reader) ~= 'function' then
    error("bad argument #1 to 'load' (function expected, got " .. type(reader) .. ")", 2)
  end
  local began = false
  return load(function()
    local piece = reader()
    if began then return piece end
    began = true
    return as_text(piece)
  end, name or LOAD_NAME)
end

------------------------------------------------------------------------------------------------------------ errors

-- The places that errors in this file give begin with its name, a character that texts do not begin with.
local OWN_PLACE = '^\1:%d+: '

-- What a function of the server raised becomes what a script may see.
local function seen(value)
  if type(value) == 'userdata' then return caught_value(value) end
  if type(value) == 'string' and byte(value) == 1 then return (gsub(value, OWN_PLACE, '')) end
  return value
end

local function after_pcall(ok, ...)
  if ok then return true, ... end
  local value = seen((...))
  if type(value) == 'table' then
    local text = value.err
    if type(text) == 'string' or type(text) == 'number' then return false, text end
  end
  return false, value
end

-- Errors were texts once, so pcall gives the text of an error table.
function globals.pcall(...)
  return after_pcall(pcall(...))
end

function globals.xpcall(call, handler)
  return xpcall(call, function(value) return handler(seen(value)) end)
end

local function after_resume(ok, ...)
  if ok then return true, ... end
  return false, seen((...))
end

local function resume_safely(...)
  if type((...)) ~= 'thread' then error("bad argument #1 to 'resume' (coroutine expected)", 2) end
  return after_resume(resume(...))
end

-- The handler of everything that runs: an error becomes a table that says where it was raised.
local function on_error(value)
  local source, line = where()
  if source and type(value) == 'string' and byte(value) == 1 then
    value = gsub(value, OWN_PLACE, sub(source, 2) .. ':' .. line .. ': ')
  else
    value = seen(value)
  end
  if type(value) ~= 'table' then value = {err = 'ERR ' .. tostring(value)} end
  if source then
    value.source = source
    value.line = line
  end
  return value
end

------------------------------------------------------------------------------------------------------ the libraries

local redis = {}
for name, value in next, host.api do redis[name] = value end

local function error_table(line)
  local code, text
  if byte(line) == 45 then
    local blank = find(line, ' ', 1, true)
    if blank then
      code, text = sub(line, 2, blank - 1), sub(line, blank + 1)
    else
      code, text = 'ERR', sub(line, 2)
    end
  else
    code, text = 'ERR', line
  end
  local first, last = find(text, '[^\r\n]'), #text
  while last > 0 and (byte(text, last) == 13 or byte(text, last) == 10) do last = last - 1 end
  return {err = code .. ' ' .. sub(text, first or 1, last)}
end

function redis.error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then return error_table('wrong number or type of arguments') end
  text = sub(text, 1, (find(text, '%z') or 0) - 1)
  if byte(text) ~= 45 then text = '-' .. text end
  return error_table(text)
end

function redis.status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then return error_table('wrong number or type of arguments') end
  return {ok = text}
end

if not for_functions then
  function redis.breakpoint() return false end
  function redis.debug() end
  function redis.replicate_commands() return true end
end

local function copy_of(table)
  local copy = {}
  for key, value in next, table do copy[key] = value end
  return copy
end

-- The matcher calls itself for every item of a pattern, and there is an end of its stack.
local PATTERN_MAX = 8192
local function check_pattern(pattern)
  if #pattern > PATTERN_MAX and find(pattern, '[%^%$%*%+%?%.%(%[%%%-]') then error('pattern too complex', 3) end
end

local strings = copy_of(string)
local gmatch, match = string.gmatch, string.match

function strings.find(text, pattern, start, plain)
  if not plain and type(pattern) == 'string' then check_pattern(pattern) end
  return find(text, pattern, start, plain)
end

function strings.match(text, pattern, start)
  if type(pattern) == 'string' then check_pattern(pattern) end
  return match(text, pattern, start)
end

function strings.gmatch(text, pattern)
  if type(pattern) == 'string' then check_pattern(pattern) end
  return gmatch(text, pattern)
end
strings.gfind = strings.gmatch

function strings.gsub(text, pattern, replacement, most)
  if type(pattern) == 'string' then check_pattern(pattern) end
  return gsub(text, pattern, replacement, most)
end

globals.string = stand_in(strings)
globals.table = stand_in(copy_of(table))
local numbers = copy_of(math)
numbers.random, numbers.randomseed = host.random, host.randomseed
globals.math = stand_in(numbers)
globals.os = stand_in({clock = os.clock})
local coroutines = copy_of(coroutine)
coroutines.resume = resume_safely
globals.coroutine = stand_in(coroutines)
globals.redis = stand_in(redis)
-- Its name in Valkey.
globals.server = globals.redis
for name, library in next, libraries do globals[name] = stand_in(library) end

local of_strings = getmetatable('')
of_strings.__index = strings
of_strings.__metatable = stand_in({__index = globals.string})

----------------------------------------------------------------------------------------------------------- running

-- Compiled chunks and functions by number. Handles of the server's would be limited to some thousands.
local chunks = {}

local callee, first, second
local function enter()
  return callee(first, second)
end

-- Keys and arguments come as a table of them, or as the only one, or not at all. (A table without room for one is
-- cheaper.)
local run
if for_functions then
  function run(number, key, argument, keys, arguments)
    callee, first, second = chunks[number], keys or key and {key} or {}, arguments or argument and {argument} or {}
    return xpcall(enter, on_error)
  end
else
  globals.KEYS, globals.ARGV = {}, {}
  function run(number, key, argument, keys, arguments)
    globals.KEYS, globals.ARGV = keys or key and {key} or {}, arguments or argument and {argument} or {}
    return xpcall(chunks[number], on_error)
  end
end

-- While a library is loaded it sees `redis` and nothing else.
local loading_redis = setmetatable({register_function = host.register_function}, {__index = missing})
for _, name in next, {'log', 'LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE', 'LOG_WARNING', 'REDIS_VERSION',
                      'REDIS_VERSION_NUM'} do
  loading_redis[name] = redis[name]
end
local loading_face = stand_in(loading_redis)
local loading = setmetatable({redis = loading_face, server = loading_face}, {__index = missing})

local function load_library(number)
  env_access.__index = loading
  local ok, value = pcall(chunks[number])
  env_access.__index = globals
  if ok then return true end
  return false, seen(value)
end

local function sweep()
  for face in next, real do
    local key = next(face)
    while key ~= nil do
      rawset(face, key, nil)
      key = next(face)
    end
  end
end

return {env = env, chunks = chunks, run = run, load_library = load_library, sweep = sweep, next = next,
        names = {EVAL_NAME, FUNCTION_NAME, LOAD_NAME}}
