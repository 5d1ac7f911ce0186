//! A flow of a dialogue: one that this run alone drives, or the sender to a multicast group, which runs share.

use linerate_engine::{FlowHandle, FlowProgress, FlowReport};
use linerate_model::{Sample, SideSettings, StreamCounting};
use linerate_sock::Mono;
use linerate_sock::poll::EventFd;
use linerate_units::Bytes;

use crate::error::ControlError;
use crate::multicast::SenderShare;

/// A flow under way.
#[derive(Debug)]
pub(super) enum OwnOrSharedFlow {
    Own(Box<FlowHandle>),
    Shared(SenderShare),
}

impl OwnOrSharedFlow {
    /// Says when the flow will begin.
    ///
    /// # Errors
    /// It begins at another time for other runs.
    pub(super) fn plan_start(&self, at: Mono) -> Result<(), ControlError> {
        match self {
            Self::Own(_) => Ok(()),
            Self::Shared(share) => share.plan_start(at),
        }
    }

    pub(super) fn begin_at(&self, at: Mono) {
        match self {
            Self::Own(handle) => handle.begin_at(at),
            Self::Shared(share) => share.begin_at(at),
        }
    }

    pub(super) fn began(&self) -> Option<Mono> {
        match self {
            Self::Own(handle) => handle.began(),
            Self::Shared(share) => share.began(),
        }
    }

    pub(super) fn settings(&self) -> SideSettings {
        match self {
            Self::Own(handle) => handle.settings().clone(),
            Self::Shared(share) => share.settings(),
        }
    }

    pub(super) fn progress(&self) -> FlowProgress {
        match self {
            Self::Own(handle) => handle.progress(),
            Self::Shared(share) => share.progress(),
        }
    }

    /// Whether a stream has failed.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Own(handle) => handle.has_failed(),
            Self::Shared(share) => share.has_failed(),
        }
    }

    pub(super) fn new_samples(&self) -> Vec<Sample> {
        match self {
            Self::Own(handle) => handle.new_samples(),
            Self::Shared(share) => share.new_samples(),
        }
    }

    /// What each stream has moved; absent for a single one, as that of a multicast group.
    pub(super) fn stream_bytes(&self) -> Option<(StreamCounting, Vec<Bytes>)> {
        match self {
            Self::Own(handle) => handle.stream_bytes(),
            Self::Shared(_) => None,
        }
    }

    pub(super) fn waker(&self) -> &EventFd {
        match self {
            Self::Own(handle) => handle.waker(),
            Self::Shared(share) => share.waker(),
        }
    }

    pub(super) fn stop_writing(&self) {
        match self {
            Self::Own(handle) => handle.stop_writing(),
            Self::Shared(share) => share.stop_writing(),
        }
    }

    /// Only receivers are stopped, and these are never shared.
    pub(super) fn stop_reading(&self, deadline: Mono) {
        if let Self::Own(handle) = self {
            handle.stop_reading(deadline);
        }
    }

    pub(super) fn abort(&self) {
        match self {
            Self::Own(handle) => handle.abort(),
            Self::Shared(share) => share.abort(),
        }
    }

    /// The counts; absent if the flow continues for other runs.
    pub(super) fn finish(self) -> Option<FlowReport> {
        match self {
            Self::Own(handle) => Some(handle.finish()),
            Self::Shared(share) => share.finish(),
        }
    }
}
