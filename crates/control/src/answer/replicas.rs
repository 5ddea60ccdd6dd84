//! Changes of replicated state: all replicas make them at one place in the order of rows.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millrace_dataplane::Instance;
use millrace_dataplane::replica::{At, Edit, Effect, Group};
use millrace_place::Held;

use super::{Result, Session};
use crate::exposed::Exposed;
use crate::pending;
use crate::trouble::Trouble;

/// How long the sequencer may take to number an edit. It does so before the next packet, or at once where none comes.
const PATIENCE: Duration = Duration::from_secs(5);

impl Session {
    /// What the replicas of the function have in common; none where its state is not replicated, or before the first packet.
    pub(super) fn replicas(&self) -> Result<Option<Arc<Group>>> {
        if self.context.mailboxes.len() < 2 {
            return Ok(None);
        }
        self.first(|desk| desk.group.clone())
    }

    /// The same where a function's own state is replicated, and not that of another one of its chain.
    pub(super) fn replicas_of(&self, exposed: &Exposed) -> Result<Option<Arc<Group>>> {
        let group = self.replicas()?;
        let one = self.context.elements.functions().len() == 1;
        let replicated = |at: usize| exposed.share(at).held == Held::Replicated;
        let own = one || (0..exposed.objects.len()).any(replicated);
        Ok(group.filter(|_| own))
    }

    /// Whether only heavy keys are replicated.
    pub(super) fn mixes(&self) -> Result<bool> {
        let group = self.replicas()?;
        Ok(group.is_some_and(|g| g.heavies().is_some()))
    }

    /// Lets every replica do something, all at one place in the order; `settings`: what rows depend on changes. The results
    /// are alike.
    pub(super) fn together<T: Send + 'static>(
        &self,
        group: &Group,
        settings: bool,
        job: impl Fn(&mut Instance, u64) -> T + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        let (sender, results) = mpsc::channel();
        let sender = Mutex::new(sender);
        let make = move |instance: &mut Instance, at: At| {
            let result = job(instance, at.time);
            // Nobody waits any more where the client's thread is gone.
            let _ = sender
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .send(result);
        };
        let edit = Edit {
            make: Arc::new(make),
            effect: match settings {
                true => Effect::Settings,
                false => Effect::State,
            },
        };
        let number = group.edit(edit).ok_or_else(pending::ended)?;
        // A worker with heavy keys does it to its part and to its replica.
        let each = if group.heavies().is_some() { 2 } else { 1 };
        let wanted = each * group.workers() as usize + usize::from(settings);
        let mut done = Vec::new();
        while done.len() < wanted {
            match results.recv_timeout(PATIENCE) {
                Ok(result) => done.push(result),
                Err(RecvTimeoutError::Disconnected) => return Err(pending::ended()),
                Err(RecvTimeoutError::Timeout) if group.withdraw(number) => {
                    return Err(Trouble::new(
                        "busy",
                        format!("no packet was numbered for {} s", PATIENCE.as_secs()),
                    )
                    .help("nothing was done; is there an output that takes no packets?"));
                }
                // It has its place in the order, and is made by each replica that comes there.
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(done)
    }
}
