//! Queues, stacks and Bloom filters, as a list of what was put in, the oldest first. A Bloom filter here
//! has no false positives.

use millrace_object::contract::Holds;
use millrace_object::program::ObjectId;

use super::exact::{Asked, E2BIG, EINVAL, ENOENT, error};
use super::{Machine, Violation};

const BPF_EXIST: u64 = 2;

impl Machine<'_> {
    /// Values in a queue, a stack or a Bloom filter, the oldest first.
    #[must_use]
    pub fn held(&self, object: ObjectId) -> Vec<Vec<u8>> {
        let held = self.exact.as_ref().and_then(|e| e.sequences.get(&object));
        held.into_iter().flatten().cloned().collect()
    }

    pub(super) fn sequence(
        &mut self,
        Asked { name, id, o, a }: Asked<'_>,
    ) -> Result<u64, Violation> {
        let filter = o.kind.membership();
        let value = match name {
            "map_push_elem" => self.bytes_at(a[1], o.value_bytes)?,
            _ if filter => self.bytes_at(a[1], o.value_bytes)?,
            _ => Vec::new(),
        };
        let Some(exact) = &mut self.exact else {
            return Ok(0);
        };
        let held = exact.sequences.entry(id).or_default();
        let full = held.len() as u64 >= o.capacity;
        let newest = o.kind.holds == Holds::Sequence { newest: true };
        let taken = match name {
            "map_push_elem" if filter => {
                if a[2] != 0 {
                    return Ok(error(EINVAL));
                }
                held.push_back(value);
                return Ok(0);
            }
            "map_push_elem" => {
                if a[2] != 0 && a[2] != BPF_EXIST {
                    return Ok(error(EINVAL));
                }
                if full && a[2] == 0 {
                    return Ok(error(E2BIG));
                }
                if full {
                    held.pop_front();
                }
                held.push_back(value);
                return Ok(0);
            }
            _ if filter => {
                let there = held.contains(&value);
                return Ok(if there { 0 } else { error(ENOENT) });
            }
            "map_pop_elem" if newest => held.pop_back(),
            "map_pop_elem" => held.pop_front(),
            _ if newest => held.back().cloned(),
            _ => held.front().cloned(),
        };
        let result = if taken.is_some() { 0 } else { error(ENOENT) };
        let bytes = taken.unwrap_or_else(|| vec![0; o.value_bytes as usize]);
        self.put(a[1], &bytes)?;
        Ok(result)
    }
}
