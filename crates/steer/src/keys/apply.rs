//! From keys to what a NIC, or its model in software, is told.

use super::draw::Keys;
use super::space::Space;
use crate::nic::Nic;
use crate::rss::{Rss, RssError};
use crate::table::repeated;

impl Space {
    /// How many indexes there are: 2^[`Space::index_bits`].
    #[must_use]
    pub fn indexes(&self) -> usize {
        1 << self.index_bits()
    }

    /// The index of a hash: its low bits. Without a hash the NIC takes the first entry, index 0.
    #[must_use]
    pub fn index(&self, hash: Option<u32>) -> u32 {
        hash.unwrap_or(0) & (u32::MAX >> (32 - self.index_bits()))
    }

    /// One port of this NIC with its key, the fields of its classes and no others, and a table that leads
    /// each index to the queue that `queue_of` says ([`Space::indexes`] of them), below `queues`. Kinds of
    /// packets without a class are not hashed, or as the coarser kind that has one.
    ///
    /// # Errors
    /// [`RssError`] when the space is of another device, or `queue_of` does not fit it.
    pub fn rss(
        &self,
        keys: &Keys,
        nic: &Nic,
        port: usize,
        queue_of: &[u32],
        queues: u32,
    ) -> Result<Rss, RssError> {
        if queue_of.len() != self.indexes() {
            return Err(RssError::Table {
                nic: nic.title.clone(),
                what: format!(
                    "{} indexes; the keys use {}",
                    queue_of.len(),
                    self.indexes()
                ),
            });
        }
        let table = repeated(queue_of, self.target().entries);
        let mut rss = Rss::new(nic, queues)
            .with_key(nic, keys.key(port).unwrap_or(&[]))?
            .with_table(nic, &table, queues)?;
        for kind in nic.kinds.keys() {
            let mut classes = self.classes().iter().filter(|class| class.port == port);
            let class = classes.find(|class| class.hashed == Some(*kind));
            let fields = class.map_or(&[][..], |class| &class.fields);
            rss = rss.with_fields(nic, *kind, fields)?;
        }
        Ok(rss)
    }
}
