//! Active expiry: keys whose time has come are deleted although nobody asks for them, and so are parts of values (the
//! fields of hashes).
//!
//! Must stay true: a segment is opened only when its earliest deadline has come; one step is bounded in segments, in
//! keys and in parts, so that a shard is never held up for long.
use super::db::Dated;
use super::edit::Editor;
use super::{Effect, Store};
use crate::ds::dated;
use crate::ds::listpack::Listpack;
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::Value;
use crate::ds::raw::dash::Due;
use crate::wire::Key;

/// Segment headers looked at in one step and database.
const SEGMENTS_STEP: usize = 16_384;
/// Keys deleted, or handed out for their parts, in one step and database.
const KEYS_STEP: usize = 2_000;
/// Parts deleted in one step and database.
pub const PARTS_STEP: usize = 2_000;

/// How far the cycle came.
#[derive(Default)]
pub(super) struct Progress {
    next_db: usize,
}

impl Store {
    /// Runs one bounded step over all databases; `true` when there is more to do at once.
    pub fn expire_step(&mut self) -> bool {
        if !self.active_expiry {
            return false;
        }
        let (count, first) = (self.dbs.len(), self.expiry.next_db);
        for offset in 0..count {
            let index = (first + offset) % count;
            if self.expire_db(index as u32) {
                self.expiry.next_db = (index + 1) % count;
                return true;
            }
        }
        false
    }

    fn expire_db(&mut self, index: u32) -> bool {
        let now_ms = self.now.ms;
        let Some(base) = self.dbs[index as usize].as_deref_mut() else { return false };
        if base.deadlines == 0 && base.dated_parts == 0 {
            return false;
        }
        let (mut gone, mut holders) = (Vec::new(), Vec::new());
        let (handed, at) =
            base.table.take_due(now_ms, base.due_at, SEGMENTS_STEP, KEYS_STEP, &mut |due| match due {
                Due::Entry(block) => gone.push(block),
                Due::Parts(block) => holders.push(Box::from(block.key())),
            });
        base.due_at = at;
        for block in &gone {
            base.note(Dated::of(block.view()), Dated::default());
        }
        for block in gone {
            self.settle(index, Key::new(block.view().key()), Effect::Expired);
            self.discard(block);
        }
        let parts = self.expire_parts_of(index, &holders);
        handed >= KEYS_STEP || parts >= PARTS_STEP
    }

    /// Deletes what is due of the values of these keys, up to the limit of a step; returns how many parts.
    fn expire_parts_of(&mut self, db: u32, holders: &[Box<[u8]>]) -> usize {
        let mut parts = 0;
        for key in holders {
            // Those behind the limit, too: the edit takes note of what is due.
            parts += self.expire_parts(db, Key::new(key), PARTS_STEP - parts);
        }
        parts
    }

    /// Deletes parts of a value whose deadlines have come, the earliest first, up to `limit`; with the last part the
    /// key goes. Returns how many parts. Is no use of the key.
    pub fn expire_parts(&mut self, db: u32, key: Key<'_>, limit: usize) -> usize {
        self.edit_unused(db, key, |editor| {
            let parts = take_due_parts(editor, limit);
            editor.expired(parts);
            parts
        })
    }
}

fn take_due_parts(editor: &mut Editor<'_>, limit: usize) -> usize {
    let now_ms = editor.now().ms;
    let (parts, is_empty) = match editor.value() {
        Some(Value::Packed(Packing::HashDeadlines, bytes)) => {
            let due = dated::due(Listpack::new(bytes), now_ms, limit);
            let Some((_, mut pack)) = editor.packed().filter(|_| due > 0) else { return 0 };
            dated::remove_first(&mut pack, due);
            (due, Listpack::new(pack.bytes()).is_empty())
        }
        _ => match editor.object_mut() {
            Some(Object::Hash(table)) => (table.take_due(now_ms, limit, |_, _| ()), table.is_empty()),
            _ => return 0,
        },
    };
    if is_empty {
        editor.remove();
    }
    parts
}
