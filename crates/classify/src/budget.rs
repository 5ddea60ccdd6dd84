//! Bounds on what is made and on what is done.

/// What a classifier may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// bytes of the table that packets walk; a diagram beyond it gives way to trees
    pub bytes: usize,
    /// steps of building a diagram: edges looked at. Some 30 ns each
    pub steps: u64,
    /// comparisons of two rules in the search for redundant ones; what is not compared is kept
    pub pairs: u64,
}

impl Default for Budget {
    /// 64 MiB, and some seconds.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            steps: 150_000_000,
            pairs: 500_000_000,
        }
    }
}

/// A budget is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the budget for decision diagrams is spent")]
pub struct Exceeded;

/// What is left of a budget of steps.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    left: u64,
}

impl Meter {
    /// So many steps.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Takes some of them.
    ///
    /// # Errors
    /// [`Exceeded`] when fewer are left; none is then.
    pub fn spend(&mut self, steps: u64) -> Result<(), Exceeded> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Exceeded)
            }
        }
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }
}
