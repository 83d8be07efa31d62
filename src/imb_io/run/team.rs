//! The ranks of a row: which communicators they have, and where they wait for each other.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::frame::run::evidence::Site;
use crate::frame::run::machine_share::HostCpus;
use crate::imb_io::plan::processes::{Groups, Member};

/// This rank's place in the rows of one number of ranks.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) groups: Groups,
    pub(super) member: Member,
    /// All groups together: agreements and sums.
    pub(super) active: Comm,
    /// The group of this rank: its files and barriers.
    pub(super) group: Comm,
    /// What is below the files, and the hosts of the group.
    pub(super) site: Site,
    /// The CPUs of all groups.
    pub(super) cpus: HostCpus,
}

impl Team {
    /// The team of this rank; None if it waits. Collective over the world.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub(super) fn make(world: &Comm, groups: Groups, directory: &Path) -> Result<Option<Self>, MpiError> {
        let active = world.prefix(groups.ranks * groups.groups)?;
        let group = world.blocks(groups.ranks, groups.groups)?;
        let (Some(active), Some(group), Some(member)) = (active, group, groups.member(world.rank())) else {
            return Ok(None);
        };
        let (site, cpus) = (Site::survey(&group, directory)?, HostCpus::survey(&active)?);
        Ok(Some(Self { groups, member, active, group, site, cpus }))
    }
}
