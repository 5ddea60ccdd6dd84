//! What `ON_START` makes of entries that are named from outside, without a run.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use millrace_check::Budget;
use millrace_control::reload::Content;
use millrace_dataplane::module::{Config, Entry, Instance, Keeping};
use millrace_model::made_at_start;
use millrace_object::program::Role;

use crate::{Error, Function};

/// State as a run would begin with it.
#[derive(Debug, Default)]
pub struct Begun {
    /// the named entries, with what `ON_START` fills in
    pub entries: Vec<Entry>,
    /// by object, what it makes where nothing else writes, of objects without named entries
    pub objects: Vec<(usize, Arc<Content>)>,
    /// ns since the epoch: when that was
    pub time: u64,
}

impl Function {
    /// Makes a state beside all runs with these entries and contents at start, and has `ON_START` run on it.
    ///
    /// # Errors
    /// The state cannot be made; the program is refused.
    pub fn begun(
        &self,
        initial: Vec<Option<Vec<u8>>>,
        entries: &[Entry],
        budget: Budget,
    ) -> Result<Begun, Error> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = since.map_or(1, |t| u64::try_from(t.as_nanos()).unwrap_or(1));
        let starts = |p: &millrace_object::program::Program| {
            p.entries.iter().any(|e| e.role == Role::OnStart)
        };
        if !self.program.as_ref().is_some_and(starts) {
            return Ok(Begun {
                entries: entries.to_vec(),
                objects: Vec::new(),
                time,
            });
        }
        let config = Config {
            time,
            initial,
            ..self.state(0, entries.to_vec())
        };
        let failed = |e: millrace_dataplane::module::ModuleError| {
            Error::wrong(e.to_string())
                .help("name entries that the function's objects have room for")
        };
        let mut state = Instance::create(self.module.clone(), &config).map_err(failed)?;
        state.start(time);
        let mut filled = Vec::with_capacity(entries.len());
        for entry in entries {
            let made = state.get(entry.object, &entry.key, time).ok().flatten();
            filled.push(Entry {
                value: made.unwrap_or_else(|| entry.value.clone()),
                ..entry.clone()
            });
        }
        let proved = self.check(budget)?;
        let mut objects = Vec::new();
        for object in made_at_start(proved.program, &proved.checked) {
            let object = object.0;
            let named = entries.iter().any(|e| e.object == object);
            let info = self.module.objects().get(object);
            let global = info.is_none_or(|o| o.kind.is_global());
            if named || global || self.module.keeping(object) != Keeping::All {
                continue;
            }
            let content = state.save(object, time).map_err(failed)?;
            objects.push((object, Arc::new(content)));
        }
        Ok(Begun {
            entries: filled,
            objects,
            time,
        })
    }
}
