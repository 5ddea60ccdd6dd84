//! Values by expression, in pages: an assignment is asked for most of what is near what it was asked for before,
//! and for little of a large arena.

use super::ExprId;

const PAGE: usize = 256;

#[derive(Clone, Debug)]
struct Page {
    known: [u64; PAGE / 64],
    values: [u64; PAGE],
}

/// The values that are known.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    pages: Vec<Option<Box<Page>>>,
}

impl Memo {
    /// The value of an expression, if it is known.
    #[must_use]
    pub fn get(&self, e: ExprId) -> Option<u64> {
        let (page, at) = (e.0 as usize / PAGE, e.0 as usize % PAGE);
        let page = self.pages.get(page)?.as_ref()?;
        let known = page.known.get(at / 64)? >> (at % 64) & 1 == 1;
        if known {
            page.values.get(at).copied()
        } else {
            None
        }
    }

    /// Makes it known.
    pub fn set(&mut self, e: ExprId, value: u64) {
        let (page, at) = (e.0 as usize / PAGE, e.0 as usize % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let Some(page) = self.pages.get_mut(page) else {
            return;
        };
        let page = page.get_or_insert_with(|| {
            Box::new(Page {
                known: [0; PAGE / 64],
                values: [0; PAGE],
            })
        });
        if let (Some(known), Some(slot)) = (page.known.get_mut(at / 64), page.values.get_mut(at)) {
            *known |= 1 << (at % 64);
            *slot = value;
        }
    }
}
