//! DEBUG OBJECT and its kin: low-level facts about a key. Nothing here counts as a use.
use super::object::{encoding, refcount};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::config::P;
use crate::ds::list::Quicklist;
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, NewValue, Payload, Value};
use crate::rdb::{Writer, value};
use crate::store::count_keys;
use crate::store::db::Ttl;
use crate::wire::{Args, Error, Key, Out};

/// The key as it lies in the table, even when its time has come: DEBUG looks at what is there.
pub fn stored<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Option<BlockRef<'a>> {
    cx.store(key.hash).db(cx.caller.db)?.table.get(key.hash, key.bytes)
}

/// Bytes of a value in a snapshot file, without its type.
fn serialized_bytes(value: Value<'_>, compress: bool) -> usize {
    let mut writer = Writer::new(compress);
    value::write(value, &mut writer);
    writer.as_bytes().len()
}

/// What DEBUG OBJECT tells of a long list.
fn list_facts(list: &Quicklist) -> String {
    let (nodes, elements) = (list.node_count(), list.len());
    format!(
        " ql_nodes:{nodes} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:{} ql_uncompressed_size:{}",
        elements as f64 / nodes as f64,
        list.limit().number(),
        u8::from(list.depth() != 0),
        list.portable_bytes(),
    )
}

/// DEBUG OBJECT key
pub fn debug_object(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let block = stored(cx, args.key()?).ok_or(Error::NoSuchKey)?;
    let (value, settings) = (block.value(), cx.host.settings());
    let facts = match value {
        Value::Object(Object::List(list)) => list_facts(list),
        _ => String::new(),
    };
    // The address of the key's bytes stands for that of the value: both lie in one block.
    out.simple(&format!(
        "Value at:{:p} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}{facts}",
        block.key().as_ptr(),
        refcount(value, &settings),
        encoding(value, block.marks()),
        serialized_bytes(value, settings.bool(P::RDBCOMPRESSION)),
        block.access(),
        cx.now.idle_seconds(block.access()),
    ));
    Ok(())
}

/// DEBUG SDSLEN key. Key and value are one block here: the value has what is left of it.
pub fn debug_sdslen(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let block = stored(cx, args.key()?).ok_or(Error::NoSuchKey)?;
    let Some(Payload::Bytes(value)) = block.string() else {
        return Err(Error::err("Not an sds encoded string."));
    };
    let (key, spare) = (block.key().len(), block.vector_bytes().saturating_sub(value.len()));
    out.simple(&format!(
        "key_sds_len:{key}, key_sds_avail:0, key_zmalloc: {key}, val_sds_len:{}, val_sds_avail:{spare}, val_zmalloc: {}",
        value.len(),
        block.heap_bytes() - key,
    ));
    Ok(())
}

/// DEBUG LISTPACK key
pub fn debug_listpack(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let block = cx.look_aside(args.key()?).ok_or(Error::NoSuchKey)?;
    match block.value() {
        Value::Packed(packing, _) if packing != Packing::IntSet => {
            out.simple("Listpack structure printed on stdout");
            Ok(())
        }
        _ => Err(Error::err("Not a listpack encoded object.")),
    }
}

/// DEBUG QUICKLIST key [full]
pub fn debug_quicklist(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let block = cx.look_aside(args.key()?).ok_or(Error::NoSuchKey)?;
    match block.value() {
        Value::Object(Object::List(_)) => {
            out.simple("Quicklist structure printed on stdout");
            Ok(())
        }
        _ => Err(Error::err("Not a quicklist encoded object.")),
    }
}

/// What Redis tells of a hash table that is not empty, without the lengths of chains: ours have none.
fn table_stats(size: usize, elements: usize) -> String {
    if elements == 0 {
        return String::new();
    }
    let title = "Hash table 0 stats (main hash table):";
    format!("{title}\n table size: {size}\n number of elements: {elements}\n")
}

/// DEBUG HTSTATS index [full]: the size of a database's table is told in segments. Deadlines have no table of their
/// own; they are counted.
pub fn debug_htstats(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let index = super::int_arg(args.bytes()?)?;
    let databases = cx.host.settings().int(P::DATABASES);
    let index = u32::try_from(index).ok().filter(|index| i64::from(*index) < databases);
    let index = index.ok_or_else(|| Error::err("Out of range database"))?;
    let counts = count_keys(cx.all(), index);
    let segments = cx.all().filter_map(|store| store.db(index)).map(|db| db.table.segments()).sum();
    let keys = table_stats(segments, counts.keys);
    let deadlines = table_stats(0, counts.deadlines);
    out.verbatim("txt", format!("[Dictionary HT]\n{keys}[Expires HT]\n{deadlines}").as_bytes());
    Ok(())
}

/// DEBUG HTSTATS-KEY key [full]: the size of a table is told in buckets.
pub fn debug_htstats_key(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let block = cx.look_aside(args.key()?).ok_or(Error::NoSuchKey)?;
    let stats = match block.value() {
        Value::Object(Object::Set(table) | Object::Hash(table)) => {
            table_stats(table.bucket_count(), table.len())
        }
        Value::Object(Object::SortedSet(table)) => table_stats(table.bucket_count(), table.len()),
        _ => {
            return Err(Error::err(
                "The value stored at the specified key is not represented using an hash table",
            ));
        }
    };
    out.verbatim("txt", stats.as_bytes());
    Ok(())
}

/// DEBUG POPULATE count [prefix [bytes]]: keys that are there stay as they are, and as in Redis nothing of it is logged.
pub fn debug_populate(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    const RANGE: &str = "value is out of range, must be positive";
    let count = args.int_from(0, RANGE)?;
    let prefix: &[u8] = if args.is_done() { b"key" } else { args.bytes()? };
    let bytes = if args.is_done() { 0 } else { args.int_from(0, RANGE)? };
    if bytes as u64 > cx.host.settings().memory(P::PROTO_MAX_BULK_LEN) {
        return Err(Error::TooLong);
    }
    let mut name = prefix.to_vec();
    name.push(b':');
    for n in 0..count {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(n).as_bytes();
        name.truncate(prefix.len() + 1);
        name.extend_from_slice(digits);
        let key = Key::new(&name);
        if cx.find(key).is_some() {
            continue;
        }
        let mut value = [b"value:", digits].concat();
        if bytes > 0 {
            value.resize(bytes, 0);
        }
        cx.put(key, NewValue::Bytes(&value), Ttl::Clear, 0);
    }
    out.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_lengths() {
        // As DEBUG OBJECT of Redis shows them with rdbcompression off.
        let cases: [(Payload<'_>, usize); 9] = [
            (Payload::Int(127), 2),
            (Payload::Int(-129), 3),
            (Payload::Int(32_768), 5),
            (Payload::Int(2_147_483_648), 11),
            (Payload::Bytes(b"12"), 2),
            (Payload::Bytes(b"012"), 4),
            (Payload::Bytes(&[b'x'; 63]), 64),
            (Payload::Bytes(&[b'x'; 64]), 66),
            (Payload::Bytes(&[b'x'; 16_384]), 16_389),
        ];
        for (value, bytes) in cases {
            assert_eq!(serialized_bytes(Value::String(value), false), bytes, "{value:?}");
        }
    }
}
