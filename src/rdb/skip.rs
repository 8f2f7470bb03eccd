//! Where a value ends, without reading it.
//!
//! Must stay true: nothing is allocated, and each turn of a loop takes bytes, so a false count costs no more than the
//! input has; of an input that is cut off nothing but [`SHORT`] is said where the whole would be passed over.
use super::reader::SHORT;
use super::{Corrupt, Reader, ValueType};

/// Whether the refusal may only mean that there are more bytes to come.
pub fn wants_more(refusal: &Corrupt) -> bool {
    refusal.reason == SHORT
}

type Skip<'a> = fn(&mut Reader<'a>) -> Result<(), Corrupt>;

fn times<'a>(reader: &mut Reader<'a>, skip: Skip<'a>) -> Result<(), Corrupt> {
    for _ in 0..reader.length()? {
        skip(reader)?;
    }
    Ok(())
}

fn lengths(reader: &mut Reader<'_>, count: usize) -> Result<(), Corrupt> {
    (0..count).try_for_each(|_| reader.length().map(|_| ()))
}

fn pair(reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    reader.skip_string()?;
    reader.skip_string()
}

fn double_text(reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    let bytes = match reader.u8()? {
        253.. => 0,
        length => usize::from(length),
    };
    reader.bytes(bytes).map(|_| ())
}

fn field_with_time(reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    reader.length()?;
    pair(reader)
}

/// Passes over a value behind its type's number.
///
/// # Errors
/// [`SHORT`] where the input ends within the value; what is no value of the type.
pub fn value(value_type: ValueType, reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    use ValueType as T;
    match value_type {
        T::String
        | T::HashZipmap
        | T::ListZiplist
        | T::SetIntset
        | T::ZsetZiplist
        | T::HashZiplist
        | T::HashListpack
        | T::ZsetListpack
        | T::SetListpack
        | T::HashListpackExPreGa => reader.skip_string(),
        T::HashListpackEx => {
            reader.time_ms()?;
            reader.skip_string()
        }
        T::List | T::Set | T::ListQuicklist => times(reader, Reader::skip_string),
        T::Hash => times(reader, pair),
        T::Zset => times(reader, |reader| {
            reader.skip_string()?;
            double_text(reader)
        }),
        T::Zset2 => times(reader, |reader| {
            reader.skip_string()?;
            reader.double().map(|_| ())
        }),
        T::ListQuicklist2 => times(reader, |reader| {
            reader.length()?;
            reader.skip_string()
        }),
        T::HashMetadata => {
            reader.time_ms()?;
            times(reader, field_with_time)
        }
        T::HashMetadataPreGa => times(reader, field_with_time),
        T::ValkeyHash2 => times(reader, |reader| {
            pair(reader)?;
            reader.time_ms().map(|_| ())
        }),
        T::StreamListpacks | T::StreamListpacks2 | T::StreamListpacks3 => stream(value_type, reader),
        T::ModulePreGa | T::Module2 => Err(reader.refuse("a module's value")),
    }
}

fn stream(value_type: ValueType, reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    let has_facts = value_type != ValueType::StreamListpacks;
    times(reader, pair)?;
    lengths(reader, if has_facts { 8 } else { 3 })?;
    for _ in 0..reader.length()? {
        reader.skip_string()?;
        lengths(reader, if has_facts { 3 } else { 2 })?;
        times(reader, |reader| {
            reader.bytes(16 + 8)?;
            reader.length().map(|_| ())
        })?;
        for _ in 0..reader.length()? {
            reader.skip_string()?;
            reader.bytes(if value_type == ValueType::StreamListpacks3 { 16 } else { 8 })?;
            times(reader, |reader| reader.bytes(16).map(|_| ()))?;
        }
    }
    Ok(())
}
