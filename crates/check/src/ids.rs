//! Identifiers of the frames and steps of a flow, for the domain and its states, on which the facts build.

use serde::Serialize;

/// Index into [`Flow::frames`](crate::facts::Flow::frames).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct FrameId(pub usize);

/// Index into [`Flow::steps`](crate::facts::Flow::steps).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct StepId(pub usize);
