//! Several captures as one, by time stamp.

use super::{Error, Reader, Record};

/// Packets of several captures, the earliest next.
///
/// Stable: of packets with the same stamp, that of the capture named first comes first, and the order
/// inside a capture is kept even where its stamps go backwards.
pub struct Merge {
    readers: Vec<Reader>,
    /// Which readers have not ended; each of them stands on a packet except `due`.
    open: Vec<bool>,
    /// Readers to step before the next packet is chosen: all at first, then the one last delivered.
    due: Vec<usize>,
}

impl Merge {
    /// Merges these captures; their positions are the sources that [`Merge::next`] names.
    pub fn new(readers: Vec<Reader>) -> Self {
        let due = (0..readers.len()).collect();
        Self {
            open: vec![true; readers.len()],
            readers,
            due,
        }
    }

    /// The next packet and the capture that it is from; none at the end of all.
    ///
    /// # Errors
    /// Those of [`Reader::next`], as soon as the capture is reached that has one. The other captures
    /// go on if it is called again.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its items"
    )]
    pub fn next(&mut self) -> Result<Option<(usize, Record<'_>)>, Error> {
        while let Some(&source) = self.due.last() {
            self.due.pop();
            let (Some(reader), Some(open)) =
                (self.readers.get_mut(source), self.open.get_mut(source))
            else {
                continue;
            };
            match reader.advance() {
                Ok(more) => *open = more,
                Err(error) => {
                    *open = false;
                    return Err(error);
                }
            }
        }
        let earliest = self
            .readers
            .iter()
            .zip(&self.open)
            .enumerate()
            .filter(|(_, (_, open))| **open)
            .filter_map(|(source, (reader, _))| Some((source, reader.record()?)))
            .min_by_key(|(source, record)| (record.time_ns, *source));
        if let Some((source, _)) = earliest {
            self.due.push(source);
        }
        Ok(earliest)
    }

    /// The captures, in the order given.
    pub fn readers(&self) -> &[Reader] {
        &self.readers
    }
}
