//! Streams: one form only, an object. A stream keeps its key when its last entry goes.
use crate::config::{P, Settings};
use crate::ds::object::{Kind, Object};
use crate::ds::raw::block::{BlockRef, NewValue, Value};
use crate::ds::stream::{NodeLimits, Stream};
use crate::store::edit::Editor;
use crate::wire::Error;

/// The stream in a block.
///
/// # Errors
/// [`Error::WrongType`] for another value.
#[inline]
pub fn of(block: BlockRef<'_>) -> Result<&Stream, Error> {
    match block.value() {
        Value::Object(Object::Stream(stream)) => Ok(stream),
        _ => Err(Error::WrongType),
    }
}

/// The stream under edit; `None`: no such key.
///
/// # Errors
/// [`Error::WrongType`] for another value.
#[inline]
pub fn edit<'e>(editor: &'e mut Editor<'_>) -> Result<Option<&'e mut Stream>, Error> {
    if !matches!(editor.kind(), None | Some(Kind::Stream)) {
        return Err(Error::WrongType);
    }
    Ok(match editor.object_mut() {
        Some(Object::Stream(stream)) => Some(stream),
        _ => None,
    })
}

/// The stream under edit, which is made when there is no such key.
///
/// # Errors
/// [`Error::WrongType`] for another value.
#[inline]
pub fn edit_or_make<'e>(editor: &'e mut Editor<'_>) -> Result<&'e mut Stream, Error> {
    if editor.kind().is_none() {
        editor.set(NewValue::Object(Box::new(Object::Stream(Box::default()))));
    }
    edit(editor)?.ok_or(Error::WrongType)
}

/// How large nodes get.
#[inline]
pub fn node_limits(settings: &Settings) -> NodeLimits {
    NodeLimits {
        bytes: settings.memory(P::STREAM_NODE_MAX_BYTES),
        entries: settings.int(P::STREAM_NODE_MAX_ENTRIES).unsigned_abs(),
    }
}
