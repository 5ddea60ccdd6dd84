//! Requests that look at state objects.

use std::sync::Arc;

use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::module::KeyValue;
use serde_json::{Value, json};

use super::{Result, Session, refused, state};
use crate::elements::Target;
use crate::merged;
use crate::pending::Pending;
use crate::protocol::{MOST_ENTRIES, Request};
use crate::trouble::Trouble;

/// Bytes of keys and values in one answer, about.
const PAGE_BYTES: usize = 256 << 10;
/// Bits of a cursor that are a place in an object; above them stands the worker, of whose parts there are fewer
/// than JSON's numbers can tell apart.
const PLACE_BITS: u32 = 40;
const PLACES: u64 = (1 << PLACE_BITS) - 1;

impl Session {
    pub(super) fn objects(&self) -> Result<Value> {
        let mut described = Vec::new();
        for target in self.context.elements.functions() {
            let indexes: Vec<_> = target.exposed.objects().map(|(i, _)| i).collect();
            let counts = self.counts(&target, &indexes)?;
            for (at, object) in indexes.iter().enumerate() {
                let entries = counts.iter().map(|of| of.get(at).copied().flatten());
                let entries: Vec<_> = entries.collect();
                described.push(describe(&target, *object, &entries));
            }
        }
        Ok(json!({ "objects": described }))
    }

    pub(super) fn object(&self, request: &Request) -> Result<Value> {
        let (target, object) = self.named(request)?;
        let counts = self.counts(&target, &[object])?;
        let entries = counts.iter().map(|of| of.first().copied().flatten());
        Ok(describe(&target, object, &entries.collect::<Vec<_>>()))
    }

    /// By worker, the entries of objects of a function.
    fn counts(&self, target: &Target, objects: &[usize]) -> Result<Vec<Vec<Option<u64>>>> {
        let (id, objects) = (target.id, objects.to_vec());
        self.each(move |desk| {
            let now = desk.now;
            let instance = desk.state(id);
            instance.map_or_else(Vec::new, |i| {
                objects.iter().map(|o| i.count(*o, now)).collect()
            })
        })
    }

    pub(super) fn get(&self, request: &Request) -> Result<Value> {
        let (target, object) = self.named(request)?;
        let (id, exposed) = (target.id, &target.exposed);
        let text = request.key.as_ref();
        let text = text.ok_or_else(|| Trouble::new("malformed", "get needs a `key`"))?;
        let key = exposed.key(object, text).map_err(|e| {
            Trouble::new("malformed", format!("key: {e}")).help(crate::contents::FORMS)
        })?;
        let wanted = key.clone();
        let values = self.each(move |desk| {
            let now = desk.now;
            let wanted = wanted.clone();
            state(desk, id)?.get(object, &wanted, now).map_err(refused)
        })?;
        let values = values.into_iter().collect::<Result<Vec<_>>>()?;
        let words = exposed.merged.get(&object);
        let sum = words.and_then(|words| {
            let parts: Vec<_> = values.iter().flatten().cloned().collect();
            merged::sum(words, &parts)
        });
        let shown: Vec<_> = values
            .iter()
            .map(|v| v.as_ref().map(|v| exposed.show_value(object, v)))
            .collect();
        // Of a divided object the worker that owns the entry has it.
        let found = match (sum, divided(&target, object)) {
            (Some(sum), _) => Some(Some(exposed.show_value(object, &sum))),
            (None, true) => shown.iter().find(|v| v.is_some()).cloned(),
            (None, false) => shown.first().cloned(),
        };
        let Some(Some(value)) = found else {
            return Err(Trouble::new("no-such-entry", "there is no such entry"));
        };
        let mut answer = json!({ "key": exposed.show_key(object, &key), "value": value });
        let holders = shown.iter().flatten().count();
        if (each_has_its_own(&target, object) || (divided(&target, object) && holders > 1))
            && let Some(members) = answer.as_object_mut()
        {
            members.insert("values".into(), json!(shown));
        }
        Ok(answer)
    }

    pub(super) fn entries(&self, request: &Request) -> Result<Value> {
        let (target, object) = self.named(request)?;
        let (id, exposed) = (target.id, &target.exposed);
        let info = exposed.info(object);
        let size = info.map_or(1, |o| (o.key_bytes + o.value_bytes).max(1));
        let most = (PAGE_BYTES / size).clamp(1, MOST_ENTRIES);
        let limit = request.limit.unwrap_or(most).clamp(1, most);
        // The parts of a divided object are listed one after the other.
        let at = request.cursor.unwrap_or(0);
        let (worker, begin) = ((at >> PLACE_BITS) as usize, at & PLACES);
        // A cursor beyond all workers is at the end.
        let (page, next) = match self.context.mailboxes.get(worker) {
            None => (Vec::new(), 0),
            Some(mailbox) => Pending::post(mailbox, move |desk: &mut Desk<'_>| {
                let now = desk.now;
                let mut cursor = begin;
                let page = state(desk, id)?.page(object, &mut cursor, limit, now);
                page.map(|p| (p, cursor)).map_err(refused)
            })?
            .wait()??,
        };
        let page = self.summed(&target, object, page)?;
        let last =
            !divided(&target, object) || worker.saturating_add(1) >= self.context.mailboxes.len();
        let cursor = match (page.len() == limit, last) {
            (true, _) => Some((worker as u64) << PLACE_BITS | next),
            (false, true) => None,
            (false, false) => Some((worker as u64 + 1) << PLACE_BITS),
        };
        let entries = page.iter().map(|(key, value)| {
            json!({
                "key": exposed.show_key(object, key),
                "value": exposed.show_value(object, value),
            })
        });
        let texts = page
            .iter()
            .map(|(key, value)| exposed.words(object, key, value));
        Ok(json!({
            "entries": entries.collect::<Vec<_>>(),
            "words": texts.collect::<Vec<_>>(),
            "cursor": cursor,
        }))
    }

    /// Entries of the first worker with what the others have added.
    fn summed(&self, target: &Target, object: usize, page: Vec<KeyValue>) -> Result<Vec<KeyValue>> {
        let Some(words) = target.exposed.merged.get(&object) else {
            return Ok(page);
        };
        let id = target.id;
        let keys: Arc<Vec<_>> = Arc::new(page.iter().map(|(key, _)| key.clone()).collect());
        let parts = self.each(move |desk| {
            let now = desk.now;
            let instance = state(desk, id)?;
            let have = |key: &Vec<u8>| Some((key.clone(), instance.get(object, key, now).ok()??));
            Ok(keys.iter().filter_map(have).collect())
        })?;
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(merged::entries(words, parts))
    }
}

fn describe(target: &Target, object: usize, entries: &[Option<u64>]) -> Value {
    let mut described = target.exposed.describe(object, entries);
    if let Some(Value::String(name)) = described.get_mut("name") {
        *name = target.named(name);
    }
    described
}

/// Whether each worker has values of its own.
fn each_has_its_own(target: &Target, object: usize) -> bool {
    let info = target.exposed.info(object);
    info.is_ok_and(|o| o.kind.contains("percpu"))
}

/// Whether each worker has a part of it.
fn divided(target: &Target, object: usize) -> bool {
    target.exposed.divided.contains_key(&object)
}
