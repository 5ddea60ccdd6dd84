//! Looking at a snapshot without going on with it: whether it is whole, and what is in it.

use std::collections::BTreeSet;
use std::io::Read;

use super::SnapshotError;
use super::format::{self, Kind};
use super::image::{Head, Maps, Rest};
use crate::slot::PAGE;

/// Contents of a snapshot.
#[derive(Debug)]
pub struct Outline {
    /// who it is
    pub head: Head,
    /// what is mapped at the end
    pub maps: Maps,
    /// pages, each as often as it came
    pub pages: usize,
    /// all else
    pub rest: Rest,
}

/// Reads a snapshot to its end.
///
/// # Errors
/// [`SnapshotError::Broken`] says what cannot be.
pub fn inspect(input: &mut dyn Read) -> Result<Outline, SnapshotError> {
    let out_of_order = || SnapshotError::broken("a section out of its order");
    format::begins(input)?;
    let mut body = Vec::new();
    if format::take(input, &mut body)? != Kind::Head {
        return Err(out_of_order());
    }
    let head: Head = format::document(&body)?;
    head.check()?;
    let (mut maps, mut pages, mut came) = (Maps::default(), 0, BTreeSet::new());
    let rest = loop {
        match format::take(input, &mut body)? {
            Kind::Maps => {
                maps = format::document(&body)?;
                maps.check(&head)?;
            }
            Kind::Pages => {
                let (address, bytes) = format::pages(&body)?;
                if !address.is_multiple_of(PAGE) || !maps.hold(address, bytes.len()) {
                    return Err(SnapshotError::broken("pages where nothing is mapped"));
                }
                let count = bytes.len() / PAGE;
                came.extend((0..count).map(|index| address + index * PAGE));
                pages += count;
            }
            Kind::Rest => break format::document::<Rest>(&body)?,
            Kind::Head | Kind::End => return Err(out_of_order()),
        }
    };
    rest.check(&head, &maps)?;
    for (start, count) in &rest.live {
        if (0..*count).any(|index| !came.contains(&(start + index * PAGE))) {
            return Err(SnapshotError::broken("a page is missing"));
        }
    }
    if format::take(input, &mut body)? != Kind::End {
        return Err(out_of_order());
    }
    Ok(Outline {
        head,
        maps,
        pages,
        rest,
    })
}
