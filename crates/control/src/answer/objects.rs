//! Requests that look at state objects.

use std::sync::Arc;

use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::module::KeyValue;
use millrace_dataplane::share::Count;
use millrace_object::state::global;
use serde_json::{Value, json};

use super::{Result, Session, refused, state};
use crate::elements::Target;
use crate::pending::Pending;
use crate::protocol::{MOST_ENTRIES, Request};
use crate::trouble::Trouble;

/// Bytes of keys and values in one answer, about.
const PAGE_BYTES: usize = 256 << 10;
/// Bits of a cursor that are a place in an object; above them stands the worker, of whose parts there are fewer
/// than JSON's numbers can tell apart.
const PLACE_BITS: u32 = 40;
const PLACES: u64 = (1 << PLACE_BITS) - 1;
/// Entries that a worker is held up for, to count keys that several workers have once.
const MOST_COUNTED: u64 = 1 << 16;

impl Session {
    pub(super) fn objects(&self) -> Result<Value> {
        let mut described = Vec::new();
        for target in self.context.elements.functions() {
            let indexes: Vec<_> = target.exposed.objects().map(|(i, _)| i).collect();
            let counts = self.counts(&target, &indexes)?;
            let each = indexes.iter().zip(&counts);
            described.extend(each.map(|(object, count)| describe(&target, *object, count)));
        }
        Ok(json!({ "objects": described }))
    }

    pub(super) fn object(&self, request: &Request) -> Result<Value> {
        let (target, object) = self.named(request)?;
        let counts = self.counts(&target, &[object])?;
        let count = counts.first();
        let mut described = count.map_or(Value::Null, |count| describe(&target, object, count));
        if target.exposed.takes_rules(object) {
            let id = target.id;
            let found =
                self.each(move |desk| desk.state(id).and_then(|i| i.rules(object).cloned()))?;
            let rules = found.into_iter().flatten().next();
            if let (Some(rules), Some(members)) = (rules, described.as_object_mut()) {
                members.insert("rules".into(), crate::rules::describe(&rules));
            }
        }
        Ok(described)
    }

    /// The entries of objects of a function.
    fn counts(&self, target: &Target, objects: &[usize]) -> Result<Vec<Count>> {
        let (id, objects) = (target.id, objects.to_vec());
        let exposed = target.exposed.clone();
        let new = move |object: &usize| {
            let kind = exposed.info(*object).map_or(&global::KIND, |o| o.kind);
            Count::new(exposed.share(*object), kind).at_most(MOST_COUNTED)
        };
        let mut counts: Vec<Count> = objects.iter().map(&new).collect();
        let found = self.each(move |desk| {
            let now = desk.now;
            let Some(instance) = desk.state(id) else {
                return Vec::new();
            };
            let one = |object: &usize| {
                let mut count = new(object);
                count.add(instance, *object, now);
                count
            };
            objects.iter().map(one).collect::<Vec<_>>()
        })?;
        let mut all = !counts.is_empty();
        for of_worker in found {
            all &= !of_worker.is_empty();
            for (count, next) in counts.iter_mut().zip(of_worker) {
                count.join(next);
            }
        }
        // Before the first packet there is no state.
        if !all {
            counts.iter_mut().for_each(Count::unknown);
        }
        Ok(counts)
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
            let own = state(desk, id)?.get(object, &wanted, now);
            match (own.map_err(refused)?, desk.heavy(id)) {
                (None, Some(heavy)) => heavy.get(object, &wanted, now).map_err(refused),
                (own, _) => Ok(own),
            }
        })?;
        let values = values.into_iter().collect::<Result<Vec<_>>>()?;
        let share = exposed.share(object);
        // Those that others have do not count where the first one's is the object's.
        let there: Vec<_> = match share.parted() {
            true => values.iter().flatten().cloned().collect(),
            false => values.iter().take(1).flatten().cloned().collect(),
        };
        let value = share.value(&key, &there);
        let shown: Vec<_> = values
            .iter()
            .map(|v| v.as_ref().map(|v| exposed.show_value(object, v)))
            .collect();
        let Some(value) = value else {
            return Err(Trouble::new("no-such-entry", "there is no such entry"));
        };
        let mut answer = json!({
            "key": exposed.show_key(object, &key),
            "value": exposed.show_value(object, &value),
        });
        let several = share.divided() && !exposed.indexed(object) && there.len() > 1;
        if (each_has_its_own(&target, object) || several)
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
        // The parts of an object are listed one after the other, but every worker has all elements of an array.
        let apart = exposed.share(object).parted() && !exposed.indexed(object);
        let at = request.cursor.unwrap_or(0);
        let (worker, begin) = ((at >> PLACE_BITS) as usize, at & PLACES);
        // Behind all parts stand the keys that are replicated, as the first worker has them.
        let workers = self.context.mailboxes.len();
        let heavy = apart && self.mixes()?;
        let behind = heavy && worker == workers;
        // A cursor beyond all workers is at the end.
        let mailbox = if behind { 0 } else { worker };
        let (page, next) = match self.context.mailboxes.get(mailbox) {
            None => (Vec::new(), 0),
            Some(mailbox) => Pending::post(mailbox, move |desk: &mut Desk<'_>| {
                let now = desk.now;
                let mut cursor = begin;
                let from = match behind {
                    true => desk.heavy(id),
                    false => Some(state(desk, id)?),
                };
                let page = from.map(|i| i.page(object, &mut cursor, limit, now));
                let page = page.unwrap_or_else(|| Ok(Vec::new()));
                page.map(|p| (p, cursor)).map_err(refused)
            })?
            .wait()??,
        };
        let last = !apart || worker.saturating_add(1) >= workers + usize::from(heavy);
        let cursor = match (page.len() == limit, last) {
            (true, _) => Some((worker as u64) << PLACE_BITS | next),
            (false, true) => None,
            (false, false) => Some((worker as u64 + 1) << PLACE_BITS),
        };
        let page = match behind {
            true => page,
            false => self.whole(&target, object, worker, page)?,
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

    /// Entries that one worker has, as all workers together have them; without those that one before it has, too.
    fn whole(
        &self,
        target: &Target,
        object: usize,
        worker: usize,
        page: Vec<KeyValue>,
    ) -> Result<Vec<KeyValue>> {
        let share = target.exposed.share(object);
        if !share.parted() || page.is_empty() {
            return Ok(page);
        }
        let id = target.id;
        let keys: Arc<Vec<_>> = Arc::new(page.into_iter().map(|(key, _)| key).collect());
        let asked = keys.clone();
        let parts = self.each(move |desk| {
            let now = desk.now;
            let instance = state(desk, id)?;
            let have = |key: &Vec<u8>| instance.get(object, key, now).ok().flatten();
            Ok(asked.iter().map(have).collect::<Vec<_>>())
        })?;
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let whole = keys.iter().enumerate().filter_map(|(at, key)| {
            let of = |part: &Vec<Option<Vec<u8>>>| part.get(at).cloned().flatten();
            if parts.iter().take(worker).any(|part| of(part).is_some()) {
                return None;
            }
            let there: Vec<_> = parts.iter().filter_map(of).collect();
            Some((key.clone(), share.value(key, &there)?))
        });
        Ok(whole.collect())
    }
}

fn describe(target: &Target, object: usize, count: &Count) -> Value {
    let mut described = target.exposed.describe(object, count.whole(), &count.each);
    if let Some(Value::String(name)) = described.get_mut("name") {
        *name = target.named(name);
    }
    described
}

/// Whether each worker has values of its own.
fn each_has_its_own(target: &Target, object: usize) -> bool {
    let info = target.exposed.info(object);
    info.is_ok_and(|o| o.kind.per_cpu)
}
