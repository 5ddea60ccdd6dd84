//! What is done for each request: one function a verb.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use millrace_dataplane::Mailbox;
use millrace_dataplane::mailbox::{Desk, Order};
use millrace_dataplane::module::KeyValue;
use serde_json::{Value, json};

use crate::edit::{self, Change};
use crate::exposed::Exposed;
use crate::merged;
use crate::protocol::{MOST_ENTRIES, MOST_STAGED, Request, VERSION};
use crate::trouble::Trouble;

/// How long a worker may take to come to the end of its burst. An output that takes nothing holds it up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of keys and values in one answer, about.
const PAGE_BYTES: usize = 256 << 10;
/// Bits of a cursor that are a place in an object; above them stands the worker, of whose parts there are fewer
/// than JSON's numbers can tell apart.
const PLACE_BITS: u32 = 40;
const PLACES: u64 = (1 << PLACE_BITS) - 1;

/// What requests work on.
pub struct Context {
    /// the function
    pub exposed: Arc<Exposed>,
    /// one a worker
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// bytes of edits that wait for the rest of them, over all clients
    pub staged: AtomicUsize,
}

/// What one client has begun.
pub struct Session {
    context: Arc<Context>,
    staged: Vec<Change>,
    bytes: usize,
}

type Result<T> = std::result::Result<T, Trouble>;

impl Session {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            staged: Vec::new(),
            bytes: 0,
        }
    }

    /// Does what a request asks for.
    pub fn answer(&mut self, request: &Request) -> Result<Value> {
        match request.verb.as_str() {
            "hello" => Ok(self.hello()),
            "objects" => self.objects(),
            "object" => self.object(request),
            "get" => self.get(request),
            "entries" => self.entries(request),
            "edit" => self.edit(request),
            "stats" => self.stats(),
            "params" => self.params(),
            "set" => self.set(request),
            "guests" | "migrate" | "snapshot" => crate::guests::answer(request),
            "drain" => self.end(Order::Drain),
            "stop" => self.end(Order::Stop),
            other => Err(
                Trouble::new("unknown", format!("there is no request `{other}`")).help(
                    "there are hello, objects, object, get, entries, edit, stats, params, set, guests, \
                     migrate, snapshot, drain, stop",
                ),
            ),
        }
    }

    fn exposed(&self) -> &Exposed {
        &self.context.exposed
    }

    fn hello(&self) -> Value {
        json!({
            "name": self.exposed().name,
            "pid": std::process::id(),
            "protocol": VERSION,
            "release": env!("CARGO_PKG_VERSION"),
            "workers": self.context.mailboxes.len(),
        })
    }

    fn objects(&self) -> Result<Value> {
        let indexes: Vec<_> = self.exposed().objects().map(|(i, _)| i).collect();
        let counted = indexes.clone();
        let counts: Vec<Vec<_>> = self.each(move |desk| {
            let now = desk.now;
            let instance = desk.instance.as_deref_mut();
            instance.map_or_else(Vec::new, |i| {
                counted.iter().map(|o| i.count(*o, now)).collect()
            })
        })?;
        let described = indexes.iter().enumerate().map(|(at, object)| {
            let entries = counts.iter().map(|of| of.get(at).copied().flatten());
            self.exposed()
                .describe(*object, &entries.collect::<Vec<_>>())
        });
        Ok(json!({ "objects": described.collect::<Vec<_>>() }))
    }

    fn object(&self, request: &Request) -> Result<Value> {
        let object = self.exposed().index(named(request)?)?;
        let entries = self.each(move |desk| {
            let now = desk.now;
            desk.instance
                .as_deref_mut()
                .and_then(|i| i.count(object, now))
        })?;
        Ok(self.exposed().describe(object, &entries))
    }

    fn get(&self, request: &Request) -> Result<Value> {
        let object = self.exposed().index(named(request)?)?;
        let text = request.key.as_ref();
        let text = text.ok_or_else(|| Trouble::new("malformed", "get needs a `key`"))?;
        let key = self.exposed().key(object, text).map_err(|e| {
            Trouble::new("malformed", format!("key: {e}")).help(crate::contents::FORMS)
        })?;
        let wanted = key.clone();
        let values = self.each(move |desk| {
            let now = desk.now;
            let wanted = wanted.clone();
            started(desk)?.get(object, &wanted, now).map_err(refused)
        })?;
        let values = values.into_iter().collect::<Result<Vec<_>>>()?;
        let words = self.exposed().merged.get(&object);
        let sum = words.and_then(|words| {
            let parts: Vec<_> = values.iter().flatten().cloned().collect();
            merged::sum(words, &parts)
        });
        let shown: Vec<_> = values
            .iter()
            .map(|v| v.as_ref().map(|v| self.exposed().show_value(object, v)))
            .collect();
        // Of a divided object the worker that owns the entry has it.
        let found = match (sum, self.divided(object)) {
            (Some(sum), _) => Some(Some(self.exposed().show_value(object, &sum))),
            (None, true) => shown.iter().find(|v| v.is_some()).cloned(),
            (None, false) => shown.first().cloned(),
        };
        let Some(Some(value)) = found else {
            return Err(Trouble::new("no-such-entry", "there is no such entry"));
        };
        let mut answer = json!({ "key": self.exposed().show_key(object, &key), "value": value });
        let holders = shown.iter().flatten().count();
        if (self.each_has_its_own(object) || (self.divided(object) && holders > 1))
            && let Some(members) = answer.as_object_mut()
        {
            members.insert("values".into(), json!(shown));
        }
        Ok(answer)
    }

    /// Whether each worker has values of its own.
    fn each_has_its_own(&self, object: usize) -> bool {
        let info = self.exposed().info(object);
        info.is_ok_and(|o| o.kind.contains("percpu"))
    }

    /// Whether each worker has a part of it.
    fn divided(&self, object: usize) -> bool {
        self.exposed().divided.contains_key(&object)
    }

    fn entries(&self, request: &Request) -> Result<Value> {
        let object = self.exposed().index(named(request)?)?;
        let info = self.exposed().info(object);
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
                let page = started(desk)?.page(object, &mut cursor, limit, now);
                page.map(|p| (p, cursor)).map_err(refused)
            })?
            .wait()??,
        };
        let page = self.summed(object, page)?;
        let last =
            !self.divided(object) || worker.saturating_add(1) >= self.context.mailboxes.len();
        let cursor = match (page.len() == limit, last) {
            (true, _) => Some((worker as u64) << PLACE_BITS | next),
            (false, true) => None,
            (false, false) => Some((worker as u64 + 1) << PLACE_BITS),
        };
        let entries = page.iter().map(|(key, value)| {
            json!({
                "key": self.exposed().show_key(object, key),
                "value": self.exposed().show_value(object, value),
            })
        });
        let texts = page
            .iter()
            .map(|(key, value)| self.exposed().words(object, key, value));
        Ok(json!({
            "entries": entries.collect::<Vec<_>>(),
            "words": texts.collect::<Vec<_>>(),
            "cursor": cursor,
        }))
    }

    /// Entries of the first worker with what the others have added.
    fn summed(&self, object: usize, page: Vec<KeyValue>) -> Result<Vec<KeyValue>> {
        let Some(words) = self.exposed().merged.get(&object) else {
            return Ok(page);
        };
        let keys: Arc<Vec<_>> = Arc::new(page.iter().map(|(key, _)| key.clone()).collect());
        let parts = self.each(move |desk| {
            let now = desk.now;
            let instance = started(desk)?;
            let have = |key: &Vec<u8>| Some((key.clone(), instance.get(object, key, now).ok()??));
            Ok(keys.iter().filter_map(have).collect())
        })?;
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(merged::entries(words, parts))
    }

    fn edit(&mut self, request: &Request) -> Result<Value> {
        let result = self.edit_all(request);
        if result.is_err() || !request.more {
            self.forget();
        }
        result
    }

    fn edit_all(&mut self, request: &Request) -> Result<Value> {
        for (at, edit) in request.edits.iter().enumerate() {
            let changes = Change::of(edit, self.exposed()).map_err(|t| Trouble {
                what: format!("edit {}: {}", self.staged.len() + 1, t.what),
                ..t
            });
            let changes = changes.map_err(|t| match (at, request.more) {
                // One edit needs no number.
                (0, false) if request.edits.len() == 1 && self.staged.is_empty() => Trouble {
                    what: t.what.trim_start_matches("edit 1: ").to_owned(),
                    ..t
                },
                _ => t,
            })?;
            let bytes: usize = changes.iter().map(Change::bytes).sum();
            let all = self.context.staged.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
            if all + bytes > MOST_STAGED {
                return Err(Trouble::new(
                    "too-large",
                    format!("edits of more than {MOST_STAGED} bytes wait to be made together"),
                )
                .help("make them in several parts; nothing was changed"));
            }
            self.staged.extend(changes);
        }
        if request.more {
            return Ok(json!({ "staged": self.staged.len() }));
        }
        let changes = Arc::new(std::mem::take(&mut self.staged));
        self.owned(&changes)?;
        let exposed = self.context.exposed.clone();
        let done = self.each(move |desk| {
            let now = desk.now;
            edit::apply(started(desk)?, &changes, &exposed, now)
        })?;
        let done = done.into_iter().collect::<Result<Vec<_>>>()?;
        // What all have alike counts once, what each has a part of as often as it was done.
        let mut all = done.first().map(|(copies, _)| *copies).unwrap_or_default();
        for (_, part) in done {
            all.set += part.set;
            all.deleted += part.deleted;
        }
        Ok(json!({ "set": all.set, "deleted": all.deleted }))
    }

    /// Refuses new entries of divided objects: nothing says whose they would be.
    fn owned(&self, changes: &Arc<Vec<Change>>) -> Result<()> {
        let parted = |change: &Change| match change {
            Change::Set { object, .. } => self.divided(*object),
            _ => false,
        };
        let places: Arc<Vec<usize>> = {
            let all = changes.iter().enumerate();
            Arc::new(all.filter(|(_, c)| parted(c)).map(|(at, _)| at).collect())
        };
        if places.is_empty() {
            return Ok(());
        }
        let (all, wanted) = (changes.clone(), places.clone());
        let have = self.each(move |desk| {
            let now = desk.now;
            let instance = started(desk)?;
            let has = |at: &usize| match all.get(*at) {
                Some(Change::Set { object, key, .. }) => {
                    instance.get(*object, key, now).is_ok_and(|v| v.is_some())
                }
                _ => false,
            };
            Ok(wanted.iter().map(has).collect::<Vec<_>>())
        })?;
        let have = have.into_iter().collect::<Result<Vec<_>>>()?;
        let nobodys = |at: &usize| !have.iter().any(|of| of.get(*at) == Some(&true));
        if (0..places.len()).any(|at| nobodys(&at)) {
            return Err(Trouble::new(
                "refused",
                "the object is divided over the workers, and none of them has this entry",
            )
            .help("only packets add entries to it; those that are there can be set and deleted"));
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.context.staged.fetch_sub(self.bytes, Ordering::Relaxed);
        self.staged = Vec::new();
        self.bytes = 0;
    }

    fn stats(&self) -> Result<Value> {
        let accounts = self.each(|desk| {
            let started = desk.instance.is_some();
            (started, desk.account())
        })?;
        let workers = accounts.iter().map(|(started, account)| {
            let mut account = serde_json::to_value(account).unwrap_or_default();
            if let Some(members) = account.as_object_mut() {
                // These are known at the end only.
                for name in [
                    "written",
                    "outputs",
                    "objects",
                    "memory",
                    "interrupted",
                    "errors",
                ] {
                    members.remove(name);
                }
                members.insert("started".into(), Value::Bool(*started));
            }
            account
        });
        Ok(json!({ "name": self.exposed().name, "accounts": workers.collect::<Vec<_>>() }))
    }

    /// Parameters are read at each packet, and nothing was proved of their values: so they can change.
    fn set(&self, request: &Request) -> Result<Value> {
        let malformed = || {
            Trouble::new("malformed", "not a setting")
                .help("write NAME=VALUE, as `run --set` takes it")
        };
        let setting = request.setting.as_deref().ok_or_else(malformed)?;
        let (name, text) = setting.split_once('=').ok_or_else(malformed)?;
        let params = &self.exposed().params;
        let param = params.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<_> = params.iter().map(|p| p.name.as_str()).collect();
            let help = match names.as_slice() {
                [] => "the function has no parameters".into(),
                names => format!("the parameters are {}", names.join(", ")),
            };
            Trouble::new(
                "no-such-parameter",
                format!("there is no parameter `{name}`"),
            )
            .help(help)
        })?;
        let value = param.encoded(text).map_err(|e| {
            Trouble::new("malformed", e).help("`millrace ctl params` lists types and values")
        })?;
        let (object, at) = (param.object.0, param.offset as usize);
        let key = vec![0; self.exposed().info(object).map_or(0, |o| o.key_bytes)];
        let written = value.clone();
        let before = self.each(move |desk| {
            let now = desk.now;
            let instance = started(desk)?;
            let section = instance.get(object, &key, now).map_err(refused)?;
            let mut section = section.unwrap_or_default();
            let place = section.get_mut(at..at.saturating_add(value.len()));
            let place = place.ok_or_else(|| {
                Trouble::new("refused", "the parameter is not in this module")
                    .help("build it again")
            })?;
            let before = place.to_vec();
            place.copy_from_slice(&value);
            instance.set(object, &key, &section, now).map_err(refused)?;
            Ok(before)
        })?;
        let before = before.into_iter().collect::<Result<Vec<_>>>()?;
        let before = before.first().map(|b| param.written(param.decoded(b)));
        Ok(json!({
            "name": name,
            "before": before,
            "now": param.written(param.decoded(&written)),
        }))
    }

    fn params(&self) -> Result<Value> {
        let params = self.exposed().params.clone();
        let sizes = self.exposed().objects.iter().map(|(o, _)| o.key_bytes);
        let sizes: Vec<_> = sizes.collect();
        self.first(move |desk| {
            let now = desk.now;
            let instance = started(desk)?;
            let shown = params.iter().map(|p| {
                let key = vec![0; sizes.get(p.object.0).copied().unwrap_or(0)];
                let section = instance.get(p.object.0, &key, now).ok().flatten();
                let at = p.offset as usize;
                let value = section
                    .as_deref()
                    .and_then(|s| s.get(at..at + p.bytes as usize));
                json!({
                    "name": p.name,
                    "type": p.type_name,
                    "value": value.map(|v| p.written(p.decoded(v))),
                })
            });
            Ok(json!({ "params": shown.collect::<Vec<_>>() }))
        })?
    }

    fn end(&self, order: Order) -> Result<Value> {
        // The first worker that takes the order ends the run for all, and others may be gone before they get it.
        let posted = self.context.mailboxes.iter();
        let posted: Vec<_> = posted
            .map(|m| Pending::post(m, move |desk: &mut Desk<'_>| desk.order(order)))
            .collect();
        let taken: Vec<Result<()>> = posted.into_iter().map(|p| p?.wait()).collect();
        if !taken.iter().any(Result::is_ok) {
            taken.into_iter().collect::<Result<()>>()?;
        }
        let word = match order {
            Order::Drain => "draining",
            Order::Stop => "stopping",
        };
        Ok(json!({ "state": word }))
    }

    /// Lets the first worker do something.
    fn first<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Desk<'_>) -> T + Send + 'static,
    ) -> Result<T> {
        let mailbox = self.context.mailboxes.first();
        let mailbox = mailbox.ok_or_else(ended)?;
        Pending::post(mailbox, job)?.wait()
    }

    /// Lets every worker do something, each at the end of a burst of its own.
    fn each<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Desk<'_>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>> {
        let posted = self.context.mailboxes.iter();
        let posted: Vec<_> = posted.map(|m| Pending::post(m, job.clone())).collect();
        posted.into_iter().map(|p| p?.wait()).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget();
    }
}

fn named(request: &Request) -> Result<&str> {
    let name = request.object.as_deref();
    name.ok_or_else(|| Trouble::new("malformed", format!("{} needs an `object`", request.verb)))
}

fn started<'a>(desk: &'a mut Desk<'_>) -> Result<&'a mut millrace_dataplane::Instance> {
    desk.instance.as_deref_mut().ok_or_else(|| {
        Trouble::new(
            "not-started",
            "no packet has come yet, and the state begins with the first",
        )
        .help("give entries that must be there before it with --map")
    })
}

fn refused(error: millrace_dataplane::module::ModuleError) -> Trouble {
    Trouble::new("refused", error)
}

fn ended() -> Trouble {
    Trouble::new("ended", "the run has ended").help("its account says what happened")
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// A job that a worker has been given.
struct Pending<T> {
    state: Arc<AtomicU8>,
    result: mpsc::Receiver<T>,
}

impl<T: Send + 'static> Pending<T> {
    fn post(
        mailbox: &Mailbox,
        mut job: impl FnMut(&mut Desk<'_>) -> T + Send + 'static,
    ) -> Result<Self> {
        let state = Arc::new(AtomicU8::new(WAITING));
        let (sender, result) = mpsc::channel();
        let mine = state.clone();
        let posted = mailbox.post(Box::new(move |desk| {
            let begins = mine.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
            if begins.is_ok() {
                // Nobody waits any more where the client's thread is gone.
                let _ = sender.send(job(desk));
            }
        }));
        posted.then_some(Self { state, result }).ok_or_else(ended)
    }

    /// Its result. A job that is given up is never begun: what timed out has not happened.
    fn wait(self) -> Result<T> {
        let state = &self.state;
        match self.result.recv_timeout(PATIENCE) {
            Ok(result) => Ok(result),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(ended()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let given_up =
                    state.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
                if given_up.is_ok() {
                    return Err(Trouble::new(
                        "busy",
                        format!("the worker is in a burst for {} s", PATIENCE.as_secs()),
                    )
                    .help("nothing was done; is there an output that takes no packets?"));
                }
                self.result.recv().map_err(|_| ended())
            }
        }
    }
}
