//! Counts, and the end of a run.

use millrace_dataplane::mailbox::{Desk, Order};
use serde_json::{Value, json};

use super::{Result, Session};
use crate::pending::Pending;

impl Session {
    pub(super) fn stats(&self) -> Result<Value> {
        let accounts = self.each(|desk| {
            let started = desk.instance.is_some() || desk.chain.is_some();
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
        Ok(json!({ "name": self.context.elements.name, "accounts": workers.collect::<Vec<_>>() }))
    }

    pub(super) fn end(&self, order: Order) -> Result<Value> {
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
}
