//! The function that runs here, as the cluster sees it.

use std::sync::{Arc, Mutex, PoisonError};

use millrace_cluster::{HandOver, Machine, OTHER, Place, Refused};
use millrace_dataplane::Module;
use millrace_dataplane::classes::away::Settled;
use millrace_dataplane::classes::{Classes, MoveError};
use millrace_dataplane::moved::{Contents, from_bytes, to_bytes};

use crate::message::refused;
use crate::{Link, Standby};

/// Bytes of an entry beside its key and its value, at most.
const HEAD: u64 = 64;

/// A running function whose buckets are those of a cluster.
pub struct Running {
    classes: Arc<Classes>,
    versions: Arc<Versions>,
    link: Arc<Link>,
    standby: Option<Arc<Standby>>,
}

/// A version of the function.
pub(crate) struct Version {
    /// how many have run before it
    pub generation: u64,
    pub contents: Contents,
    pub module: Arc<Module>,
    pub fingerprint: [u8; 32],
}

/// Which version of the function runs.
pub(crate) struct Versions {
    classes: Arc<Classes>,
    first: Arc<Version>,
    /// the one that runs by now, as it was seen last
    last: Mutex<Arc<Version>>,
}

impl Versions {
    /// The one that runs now.
    pub fn now(&self) -> Arc<Version> {
        let (runs, generation) = self.classes.runs();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.generation != generation {
            *last = match runs {
                Some(runs) => {
                    let parts: Vec<&[u8]> = runs.parts.iter().map(Vec::as_slice).collect();
                    let of = (&runs.contents, &runs.module);
                    Version::new(of, generation, self.classes.count(), &parts)
                }
                None => self.first.clone(),
            };
        }
        last.clone()
    }
}

impl Version {
    fn new(
        (contents, module): (&Contents, &Arc<Module>),
        generation: u64,
        buckets: usize,
        parts: &[&[u8]],
    ) -> Arc<Self> {
        let mut said = Vec::new();
        for object in module.objects() {
            // Not the capacity: a larger machine has room for more.
            let of = (object.key_bytes, object.value_bytes);
            said.push(format!("{} {} {of:?}", object.name, object.kind.name));
        }
        let objects = said.join("\n");
        let buckets = (buckets as u64).to_be_bytes();
        let architecture = std::env::consts::ARCH.as_bytes();
        let mut all: Vec<&[u8]> = vec![b"millrace 1", architecture, objects.as_bytes(), &buckets];
        all.extend(parts);
        Arc::new(Self {
            generation,
            contents: contents.clone(),
            module: module.clone(),
            fingerprint: crate::secret::digest(&all),
        })
    }
}

impl Running {
    /// Over these classes, which were made with `link` as other machines. `parts` is all by which two machines have to be equal beside the module's
    /// objects: the code, the steering with its keys.
    #[must_use]
    pub fn new(
        classes: &Arc<Classes>,
        contents: &Contents,
        module: &Arc<Module>,
        parts: &[&[u8]],
        link: &Arc<Link>,
    ) -> Self {
        let first = Version::new((contents, module), 0, classes.count(), parts);
        Self {
            classes: classes.clone(),
            versions: Arc::new(Versions {
                classes: classes.clone(),
                last: Mutex::new(first.clone()),
                first,
            }),
            link: link.clone(),
            standby: None,
        }
    }

    /// The version of the function that runs now.
    fn version(&self) -> Arc<Version> {
        self.versions.now()
    }

    /// Puts entries in that are of this version.
    fn put(&self, version: &Version, bucket: u32, entries: &[u8]) -> Result<(), Refused> {
        let of = (&*version.module, &version.contents);
        let entries = from_bytes(entries, bucket, of).map_err(|e| refused(e.to_string()))?;
        let taken = self
            .classes
            .take(bucket as usize, entries, version.generation);
        let taken = taken.map_err(|e| refused(e.to_string()))?;
        self.link.took(taken.entries);
        Ok(())
    }

    /// Has copies of its buckets elsewhere, and goes on with those of other nodes.
    pub fn keep(&mut self, standby: &Arc<Standby>) {
        standby.watch(&self.versions);
        self.standby = Some(standby.clone());
    }
}

impl Machine for Running {
    fn buckets(&self) -> u32 {
        self.classes.count() as u32
    }

    fn fingerprint(&self) -> [u8; 32] {
        self.version().fingerprint
    }

    fn room(&self) -> u64 {
        let version = self.version();
        let each = version.module.objects().iter().map(|o| {
            let entry = HEAD + (o.key_bytes + o.value_bytes) as u64;
            o.capacity.saturating_mul(entry)
        });
        each.fold(0, u64::saturating_add)
    }

    fn foresee(&self, buckets: &[u32]) {
        self.classes.foresee(buckets.iter().copied());
    }

    fn stays(&self) -> Option<String> {
        let why = self.classes.stays()?;
        Some(match why {
            MoveError::Changed => "its function was replaced by another one, and which entries the buckets of that have is not known".to_owned(),
            other => other.to_string(),
        })
    }

    fn give(&self, bucket: u32) -> Result<Vec<u8>, Refused> {
        let given = self.classes.give(bucket as usize);
        let entries = given.map_err(|e| refused(e.to_string()))?;
        let live = entries.iter().filter(|(_, e)| !e.rest.free).count();
        self.link.gave(live as u64);
        Ok(to_bytes(&entries))
    }

    fn take(&self, bucket: u32, entries: &[u8]) -> Result<(), Refused> {
        self.put(&self.version(), bucket, entries)
    }

    fn accept(&self, what: &HandOver) -> Result<(), Refused> {
        // One look: between two of them another version may have begun to run.
        let version = self.version();
        if what.fingerprint != version.fingerprint {
            return Err(refused(OTHER.to_owned()));
        }
        self.put(&version, what.bucket, &what.entries)
    }

    fn inherit(&self, bucket: u32, from: &str, life: u64) {
        let Some(standby) = &self.standby else { return };
        let generation = self.version().generation;
        let Some(inherited) = standby.inherit(bucket, (from, life), generation) else {
            return;
        };
        // Without room for all of them it takes those that were refreshed last.
        let (mut entries, mut lost) = (inherited.entries, 0);
        while !entries.is_empty() {
            let taken = self
                .classes
                .take(bucket as usize, entries.clone(), generation);
            match taken {
                Ok(taken) => {
                    standby.inherits(taken.entries, lost);
                    return;
                }
                Err(MoveError::Full) => {
                    let oldest = entries.len().div_ceil(8);
                    entries.drain(..oldest);
                    lost += oldest as u64;
                }
                // The run ends, or its function is another one.
                Err(_) => {
                    lost += entries.len() as u64;
                    entries.clear();
                }
            }
        }
        standby.inherits(0, lost);
    }

    fn settle(&self, bucket: u32, place: Place, back: Option<&[u8]>) {
        // No other version begins to run while a bucket is on its way: they are those that `give` wrote.
        let version = self.version();
        let of = (&*version.module, &version.contents);
        let entries = back.and_then(|back| from_bytes(back, bucket, of).ok());
        let (place, fall_back) = match place {
            Place::Here => (
                Settled::Here(entries.unwrap_or_default()),
                Settled::Here(Vec::new()),
            ),
            Place::Away => (Settled::Away, Settled::Away),
        };
        let here = matches!(place, Settled::Here(_));
        if self.classes.settle(bucket as usize, place).is_err() {
            // Packets go on without what found no room; at the end of the run there are none.
            let _ = self.classes.settle(bucket as usize, fall_back);
        }
        if let Some(standby) = self.standby.as_ref().filter(|_| here) {
            standby.arrived(bucket);
        }
    }
}
