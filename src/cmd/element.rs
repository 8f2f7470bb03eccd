//! Elements of containers in replies, and the reply of one step of a walk over them: the same in all families.
use crate::ds::listpack::Element;
use crate::wire::Out;

/// Writes an element as a string.
#[inline]
pub(super) fn put_element(out: &mut Out, element: Element<'_>) {
    match element {
        Element::Bytes(text) => out.bulk(text),
        Element::Int(int) => out.bulk_int(int),
    }
}

/// Completes the reply of a step of a walk: `found` strings were written since `mark`, and `cursor` goes on.
pub(super) fn put_walk(out: &mut Out, mark: usize, cursor: u64, found: usize) {
    out.insert_at(mark, |out| {
        out.array(2);
        out.bulk(itoa::Buffer::new().format(cursor).as_bytes());
        out.array(found);
    });
}
