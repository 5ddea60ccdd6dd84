//! The requests: one function a verb, one file a subject.

mod chain;
mod classes;
mod edits;
mod objects;
mod orders;
mod params;
mod profile;
mod reload;
mod replicas;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use millrace_dataplane::Mailbox;
use millrace_dataplane::mailbox::Desk;
use serde_json::{Value, json};

use crate::edit::Change;
use crate::elements::{Elements, Target};
use crate::pending::Pending;
use crate::protocol::{Request, VERSION};
use crate::trouble::Trouble;

/// Context of a request.
pub struct Context {
    /// what runs
    pub elements: Arc<Elements>,
    /// one a worker
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// bytes of edits that wait for the rest of them, over all clients
    pub staged: AtomicUsize,
    /// a client traces packets
    pub tracing: AtomicBool,
}

/// State of one client's session.
pub struct Session {
    context: Arc<Context>,
    staged: Vec<Change>,
    /// whose state the staged edits are for
    whose: Option<u64>,
    bytes: usize,
    /// packets that it traces
    trace: Option<Box<dyn crate::trace::Trace>>,
    /// what was counted when its profile began
    profile: Option<profile::Counted>,
}

type Result<T> = std::result::Result<T, Trouble>;

/// The requests there are.
const VERBS: &str = "hello, objects, object, get, entries, edit, stats, params, set, chain, reload, class, trace, profile, guests, migrate, snapshot, drain, stop";

impl Session {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            staged: Vec::new(),
            whose: None,
            bytes: 0,
            trace: None,
            profile: None,
        }
    }

    /// Does what a request asks for.
    pub fn answer(&mut self, request: &Request) -> Result<Value> {
        let elements = self.context.elements.clone();
        let parted = elements.classes.get();
        // What all workers have together is whole only while no entries are on their way between them.
        let whole = matches!(
            request.verb.as_str(),
            "object" | "get" | "entries" | "edit" | "set" | "chain" | "reload"
        );
        // No entries of the function that is replaced come into the one that replaces it.
        let shown = |of: &crate::protocol::ChainRequest| of.op == "show";
        let replaces = match request.verb.as_str() {
            "chain" => !request.chain.as_ref().is_some_and(shown),
            "reload" => !request.check,
            _ => false,
        };
        let paused = parted
            .filter(|_| replaces)
            .map(|parted| parted.classes.pause());
        let _paused = paused.transpose().map_err(|_| {
            Trouble::new(
                "busy",
                "buckets are on their way between this machine and another one",
            )
            .help("nothing was changed; try again when `millrace cluster show` has none to move")
        })?;
        // Guests stay where they are: only their classes change.
        let moving = |parted: &&crate::elements::Parted| parted.classes.buckets().is_some();
        let _still = parted
            .filter(|_| whole)
            .filter(moving)
            .map(|parted| parted.classes.still());
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
            "chain" => self.chain(request),
            "reload" => self.reload(request),
            "class" => self.class(request),
            "trace" => self.trace(request),
            "profile" => self.profile(request),
            "guests" | "migrate" | "snapshot" => {
                crate::guests::answer(request, &self.context.elements.list())
            }
            "drain" => self.end(millrace_dataplane::mailbox::Order::Drain),
            "stop" => self.end(millrace_dataplane::mailbox::Order::Stop),
            other => Err(
                Trouble::new("unknown", format!("there is no request `{other}`"))
                    .help(format!("there are {VERBS}")),
            ),
        }
    }

    fn hello(&self) -> Value {
        let elements = self.context.elements.list();
        json!({
            "name": self.context.elements.name,
            "pid": std::process::id(),
            "protocol": VERSION,
            "release": env!("CARGO_PKG_VERSION"),
            "workers": self.context.mailboxes.len(),
            "elements": elements.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
        })
    }

    /// The function and the object that a request names.
    fn named(&self, request: &Request) -> Result<(Target, usize)> {
        let name = request.object.as_deref().ok_or_else(|| {
            Trouble::new("malformed", format!("{} needs an `object`", request.verb))
        })?;
        let (target, name) = self.context.elements.object(name)?;
        let index = target.exposed.index(name)?;
        Ok((target, index))
    }

    /// Lets the first worker do something.
    fn first<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Desk<'_>) -> T + Send + 'static,
    ) -> Result<T> {
        let mailbox = self.context.mailboxes.first();
        let mailbox = mailbox.ok_or_else(crate::pending::ended)?;
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

    fn forget(&mut self) {
        self.context.staged.fetch_sub(self.bytes, Ordering::Relaxed);
        self.staged = Vec::new();
        self.whose = None;
        self.bytes = 0;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget();
        self.end_trace();
    }
}

/// The state of an element, between two bursts.
fn state<'a>(desk: &'a mut Desk<'_>, element: u64) -> Result<&'a mut millrace_dataplane::Instance> {
    let gone = desk.chain.is_some();
    desk.state(element).ok_or_else(|| {
        if gone {
            return Trouble::new("no-such-element", "the element has left the chain")
                .help("`millrace ctl chain show` lists those that are there");
        }
        not_started()
    })
}

fn not_started() -> Trouble {
    Trouble::new(
        "not-started",
        "no packet has come yet, and the state begins with the first",
    )
    .help("give entries that must be there before it with --map")
}

fn refused(error: millrace_dataplane::module::ModuleError) -> Trouble {
    Trouble::new("refused", error)
}
