//! Packets of what runs, explained as they come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::worker::watch::{Observer, Purpose};
use serde_json::{Value, json};

use super::{Result, Session, not_started};
use crate::pending::Pending;
use crate::protocol::Request;
use crate::trouble::Trouble;

/// How long an answer waits for a packet.
const WAIT: Duration = Duration::from_millis(500);
/// Most packets of one trace.
const MOST: u64 = 1_000_000;

impl Session {
    pub(super) fn trace(&mut self, request: &Request) -> Result<Value> {
        let malformed =
            |what: &str| Trouble::new("malformed", what).help("see docs/control.md, \"Protocol\"");
        let asked = request.trace.as_ref();
        let asked = asked.ok_or_else(|| malformed("trace needs a `trace`"))?;
        match asked.op.as_str() {
            "begin" => {
                let filter = asked.filter.as_deref().unwrap_or("any");
                let count = asked.count.unwrap_or(1).clamp(1, MOST);
                self.begin_trace(filter, count)
            }
            "next" => match &mut self.trace {
                Some(trace) => Ok(trace.next(WAIT)),
                None => Err(malformed("nothing is traced")),
            },
            "end" => {
                self.end_trace();
                Ok(json!({}))
            }
            other => Err(malformed(&format!("a trace has no `{other}`"))),
        }
    }

    fn begin_trace(&mut self, filter: &str, count: u64) -> Result<Value> {
        let context = self.context.clone();
        let tracer = context.elements.tracer.get().ok_or_else(|| {
            Trouble::new("refused", "packets of this run cannot be traced")
                .help("the kernel has them, or none of its elements is a function with lines")
        })?;
        // A client that has gone may not have been missed yet.
        let began = Instant::now();
        let take = || {
            let free =
                context
                    .tracing
                    .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
            free.is_ok()
        };
        let mut mine = take();
        while !mine && began.elapsed() < 2 * WAIT {
            std::thread::sleep(WAIT / 20);
            mine = take();
        }
        if !mine {
            return Err(
                Trouble::new("busy", "another client traces packets of this run")
                    .help("try again when it has ended"),
            );
        }
        // From here on the end of the session ends it.
        let begun = self.start_trace(tracer.as_ref(), filter, count);
        if begun.is_err() {
            self.trace = None;
            self.stop_watching();
            context.tracing.store(false, Ordering::Release);
        }
        begun
    }

    fn start_trace(
        &mut self,
        tracer: &dyn crate::trace::Tracer,
        filter: &str,
        count: u64,
    ) -> Result<Value> {
        let chain = self.first(|desk| {
            let chain = desk.chain.as_ref();
            chain.map(|c| (c.elements(), c.topology().clone()))
        })?;
        let workers = self.context.mailboxes.len();
        let mut trace = tracer.begin(filter, count, chain)?;
        let observers = trace.observers(workers);
        self.trace = Some(trace);
        let posted = (self.context.mailboxes.iter().zip(observers)).map(|(mailbox, observer)| {
            let mut observer: Option<Box<dyn Observer>> = Some(observer);
            Pending::post(mailbox, move |desk: &mut Desk<'_>| {
                desk.watch(Purpose::Trace, observer.take())
            })
        });
        let posted: Vec<_> = posted.collect();
        let mut watched = false;
        for pending in posted {
            // A worker whose packets have ended is none that could be watched.
            watched |= pending.and_then(Pending::wait).unwrap_or(false);
        }
        match watched {
            true => Ok(json!({ "workers": workers })),
            false => Err(not_started()),
        }
    }

    /// No packet is followed any more.
    pub(super) fn end_trace(&mut self) {
        if self.trace.take().is_some() {
            self.stop_watching();
            self.context.tracing.store(false, Ordering::Release);
        }
    }

    fn stop_watching(&self) {
        for mailbox in &self.context.mailboxes {
            // A worker that has ended watches nothing.
            let _ = mailbox.post(Box::new(|desk: &mut Desk<'_>| {
                desk.watch(Purpose::Trace, None);
            }));
        }
    }
}
