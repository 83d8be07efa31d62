//! Communicators of the ranks of a row.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::frame::run::evidence::StorageSite;
use crate::frame::run::interference::HostCpus;
use crate::imb_io::plan::processes::{Groups, Member};

/// Communicators and position of this rank, for all rows with one number of ranks.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) groups: Groups,
    pub(super) member: Member,
    /// Ranks of all groups, for agreements and sums.
    pub(super) active: Comm,
    /// Ranks of the group of this rank, for its files and barriers.
    pub(super) group: Comm,
    /// Storage below the files, and hosts of the group.
    pub(super) site: StorageSite,
    pub(super) cpus: HostCpus,
}

impl Team {
    /// Creates the team of this rank; None if it waits. Collective over the world.
    pub(super) fn create(world: &Comm, groups: Groups, directory: &Path) -> Result<Option<Self>, MpiError> {
        let active = world.prefix(groups.ranks * groups.groups)?;
        let group = world.blocks(groups.ranks, groups.groups)?;
        let (Some(active), Some(group), Some(member)) = (active, group, groups.member(world.rank())) else {
            return Ok(None);
        };
        let (site, cpus) = (StorageSite::survey(&group, directory)?, HostCpus::survey(&active)?);
        Ok(Some(Self { groups, member, active, group, site, cpus }))
    }
}
