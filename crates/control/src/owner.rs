//! The worker that an entry of a divided object belongs to, while buckets of the function may have moved.

use millrace_dataplane::classes::away::Whose;

use crate::elements::{Elements, Target};
use crate::trouble::Trouble;

impl Elements {
    /// The worker whose packets use the entry under `key` of a divided object. Nothing moves as long as the answer is used
    /// ([`millrace_dataplane::classes::Classes::still`]).
    ///
    /// # Errors
    /// No worker of this run, or it is not known which.
    pub(crate) fn owner(
        &self,
        target: &Target,
        object: usize,
        key: &[u8],
    ) -> Result<usize, Trouble> {
        let refused = |what: &str, help: &str| Trouble::new("refused", what).help(help);
        let packets = "only packets add such entries; those that are there can be set and deleted";
        let owning = target.exposed.owning.as_ref();
        // By the table as packets came at first. What says nothing of a key says nothing of its bucket either.
        let first = owning.and_then(|o| o.owner(object, key)).ok_or_else(|| {
            refused(
                "its key does not tell which worker has the packets that use it",
                packets,
            )
        })?;
        let Some((classes, buckets)) = self
            .classes
            .get()
            .and_then(|parted| Some((&parted.classes, parted.classes.buckets()?)))
        else {
            return Ok(first as usize);
        };
        if !classes.are_of(target.id) {
            return Err(refused(
                "buckets of the run are those of another function, by which packets come",
                packets,
            ));
        }
        let bucket = buckets
            .entry(object, key)
            .and_then(|b| u16::try_from(b).ok());
        match bucket.map(|bucket| classes.whose(bucket)) {
            Some(Whose::Worker(worker)) => Ok(worker),
            Some(Whose::Away) => Err(refused(
                "the packets that use it go to another machine of the cluster",
                "ask the others: `millrace cluster show` lists them; nothing was changed",
            )),
            Some(Whose::Waits) => Err(Trouble::new(
                "busy",
                "the packets that use it wait for a bucket on its way to another machine",
            )
            .help("nothing was changed; try again")),
            None => Err(refused(
                "its key does not tell which worker has the packets that use it",
                packets,
            )),
        }
    }
}
