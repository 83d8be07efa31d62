//! Files and their names. A name is an absolute path without symbolic links, or the given one in old recordings; it denotes a new file if
//! the program recreates it. Several names denote one file if they had the same inode while both existed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use super::interner::Interner;
use crate::call::{Call, FileIdentity};
use crate::function::{Function, Role};
use crate::head::OpenedFile;
use crate::names::strip_driver_prefix;

/// The name of the file that a call opens, deletes or changes.
fn name_of(call: &Call) -> Option<&str> {
    call.path.as_deref().or_else(|| call.name.as_deref().map(strip_driver_prefix))
}

/// MPI_File_open of one process.
#[derive(Clone, Debug)]
struct Opening {
    begin_ns: i128,
    process: usize,
    /// Number of the name.
    name: u32,
    /// Common number of the communicator.
    comm: Option<u32>,
    identity: Option<FileIdentity>,
    state: FileState,
    is_successful: bool,
}

/// State of a file before a call.
#[derive(Clone, Copy, Debug)]
struct FileState {
    begin_ns: i128,
    /// Size, -1 if it did not exist.
    size_bytes: Option<i64>,
    /// Time since the last modification.
    unchanged_ns: Option<u64>,
}

/// Names in the recordings.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Interner<String>,
    /// Name as the program gave it first.
    given: Vec<String>,
    /// The name was passed to MPI.
    has_mpi_calls: Vec<bool>,
    openings: Vec<Opening>,
    /// Successful MPI_File_delete.
    deletions: Vec<(u32, FileState)>,
    /// Times of successful unlinks and renames. A replay does not execute them.
    posix_removals: Vec<(u32, i128)>,
    /// Names before and after successful renames.
    renames: Vec<(u32, u32)>,
    /// Times at which a process found that a name did not exist any more.
    removals: Vec<(u32, i128)>,
    /// File-system types. Empty if processes reported different ones.
    fs_types: HashMap<String, String>,
}

impl NameTable {
    pub(super) fn record_fs_type(&mut self, path: &str, fs_type: String) {
        let known = self.fs_types.entry(strip_driver_prefix(path).to_owned()).or_insert_with(|| fs_type.clone());
        if *known != fs_type {
            known.clear();
        }
    }

    pub(super) fn record_removal(&mut self, path: &str, seen_ns: i128) {
        // The process has opened it before.
        let name = self.names.numbers.get(strip_driver_prefix(path));
        self.removals.extend(name.map(|name| (*name, seen_ns)));
    }

    /// Records a call that opens or deletes a file. `comm` is the common number of its communicator.
    pub(super) fn record_call(&mut self, process: usize, call: &Call, begin_ns: i128, comm: Option<u32>) {
        let is_posix = call.function.role() == Role::Posix;
        if !is_posix && !matches!(call.function, Function::Open | Function::Delete) {
            return;
        }
        let Some(name) = name_of(call) else { return };
        let name = self.number(name, call.name.as_deref().unwrap_or_default());
        let state = FileState { begin_ns, size_bytes: call.number, unchanged_ns: call.unchanged_ns };
        let is_successful = call.error.is_none();
        self.has_mpi_calls[name as usize] |= !is_posix;
        match call.function {
            Function::Open => {
                let identity = call.identity;
                self.openings.push(Opening { begin_ns, process, name, comm, identity, state, is_successful });
            }
            Function::Delete if is_successful => self.deletions.push((name, state)),
            Function::Unlink | Function::Rename if is_successful => {
                self.posix_removals.push((name, begin_ns));
                if let Some(path) = call.target_path.as_deref() {
                    let target = self.number(path, path);
                    self.renames.push((name, target));
                }
            }
            _ => {}
        }
    }

    fn number(&mut self, name: &str, given: &str) -> u32 {
        let number = self.names.intern(name.to_owned());
        if number as usize == self.given.len() {
            self.given.push(strip_driver_prefix(given).to_owned());
            self.has_mpi_calls.push(false);
        }
        number
    }

    /// Names that MPI-IO uses, and those from or to which their files are renamed.
    fn used_names(&self, groups: &NameGroups) -> HashSet<u32> {
        let with_mpi_calls = (0..self.names.list.len() as u32).filter(|name| self.has_mpi_calls[*name as usize]);
        let mut used: HashSet<u32> = with_mpi_calls.map(|name| groups.root(name)).collect();
        loop {
            let known = used.len();
            for (one, other) in &self.renames {
                let roots = [groups.root(*one), groups.root(*other)];
                if roots.iter().any(|root| used.contains(root)) {
                    used.extend(roots);
                }
            }
            if used.len() == known {
                return used;
            }
        }
    }

    /// Assigns names to files. `hosts` are those of the processes, `first_ranks` the process of the first rank of each communicator.
    pub(super) fn into_files(self, hosts: &[&str], first_ranks: &[Option<usize>]) -> FileTable {
        let mut groups = NameGroups((0..self.names.list.len() as u32).collect());
        self.join_names_of_inodes(hosts, &mut groups);
        self.join_collective_openings(hosts, first_ranks, &mut groups);
        let mut table = FileTable::default();
        let mut numbers = Interner::default();
        let used = self.used_names(&groups);
        for name in (0..self.names.list.len() as u32).filter(|name| used.contains(&groups.root(*name))) {
            table.numbers.insert(self.names.list[name as usize].clone(), numbers.intern(groups.root(name)));
        }
        let file_of = |name: u32| table.numbers.get(&self.names.list[name as usize]).map(|file| *file as usize);
        table.files = numbers.list.iter().map(|root| FileHistory::new(&self, *root)).collect();
        let mut same_names: HashMap<&str, u32> = HashMap::new();
        numbers.list.iter().for_each(|root| *same_names.entry(&self.given[*root as usize]).or_default() += 1);
        for (file, root) in table.files.iter_mut().zip(&numbers.list) {
            // Relative names in different directories.
            if same_names[self.given[*root as usize].as_str()] > 1 {
                file.path.clone_from(&self.names.list[*root as usize]);
            }
        }
        for opening in &self.openings {
            let Some(file) = file_of(opening.name) else { continue };
            table.opened_with.extend(opening.comm.map(|comm| (file as u32, comm)));
            if opening.is_successful {
                table.files[file].set_earlier_state(opening.state);
                table.files[file].last_opening_ns = table.files[file].last_opening_ns.max(Some(opening.begin_ns));
            }
        }
        for (name, state) in &self.deletions {
            let Some(file) = file_of(*name).map(|file| &mut table.files[file]) else { continue };
            let first = *file.first_deletion_ns.get_or_insert(state.begin_ns);
            file.first_deletion_ns = Some(first.min(state.begin_ns));
            if state.size_bytes.is_some() {
                file.set_earlier_state(*state);
            }
        }
        for (name, seen_ns) in &self.removals {
            let Some(file) = file_of(*name).map(|file| &mut table.files[file]) else { continue };
            file.removal_ns = Some(file.removal_ns.map_or(*seen_ns, |known| known.min(*seen_ns)));
        }
        table
    }

    /// Joins names with the same inode on one host: hard links, and paths through several mounts. On different hosts, whose devices have
    /// other numbers, also the given names must be equal.
    fn join_names_of_inodes(&self, hosts: &[&str], groups: &mut NameGroups) {
        let opened = || self.openings.iter().filter_map(|opening| Some((opening, opening.identity?)));
        let on_host = opened().map(|(opening, identity)| ((hosts[opening.process], identity), opening));
        self.join_aliases(on_host, groups);
        let by_name = opened().map(|(opening, identity)| {
            ((self.given[opening.name as usize].as_str(), FileIdentity { device: 0, ..identity }), opening)
        });
        self.join_aliases(by_name, groups);
    }

    fn join_aliases<'a, K: Eq + Hash>(
        &'a self,
        openings: impl Iterator<Item = (K, &'a Opening)>,
        groups: &mut NameGroups,
    ) {
        let mut inodes: HashMap<K, BTreeMap<u32, NameOfInode>> = HashMap::new();
        for (key, opening) in openings {
            let new = NameOfInode { span_ns: [opening.begin_ns; 2], is_created: opening.state.size_bytes == Some(-1) };
            let names = inodes.entry(key).or_default();
            names.entry(opening.name).and_modify(|known| known.add(new)).or_insert(new);
        }
        let deletions = self.deletions.iter().map(|(name, state)| (*name, state.begin_ns));
        let mut ends: HashMap<u32, Vec<i128>> = HashMap::new();
        let removals = self.removals.iter().chain(&self.posix_removals).copied();
        deletions.chain(removals).for_each(|(name, ns)| ends.entry(name).or_default().push(ns));
        let is_removed = |name: &u32, from_ns: i128, to_ns: i128| {
            ends.get(name).is_some_and(|ends| ends.iter().any(|ns| (from_ns..=to_ns).contains(ns)))
        };
        for names in inodes.into_values() {
            let mut names: Vec<(u32, NameOfInode)> = names.into_iter().collect();
            names.sort_by_key(|(_, of)| of.span_ns[0]);
            for (index, (one, first)) in names.iter().enumerate() {
                // A renamed file, or one that reuses the inode, is another file: both names may exist later.
                let is_alias = |(other, later): &&(u32, NameOfInode)| {
                    !later.is_created
                        && !is_removed(one, first.span_ns[0], later.span_ns[1])
                        && !is_removed(other, later.span_ns[0], first.span_ns[1])
                };
                names[index + 1..].iter().filter(is_alias).for_each(|(other, _)| groups.join(*one, *other));
            }
        }
    }

    /// Joins the names that ranks on different hosts gave in the same collective opening: a file may be mounted at different places.
    fn join_collective_openings(&self, hosts: &[&str], first_ranks: &[Option<usize>], groups: &mut NameGroups) {
        let mut sequences: HashMap<(u32, usize), Vec<u32>> = HashMap::new();
        for opening in &self.openings {
            if let Some(comm) = opening.comm {
                sequences.entry((comm, opening.process)).or_default().push(opening.name);
            }
        }
        let last_part = |name: u32| self.names.list[name as usize].rsplit('/').next();
        for ((comm, process), names) in &sequences {
            let Some(first) = first_ranks.get(*comm as usize).copied().flatten() else { continue };
            let Some(leading) = sequences.get(&(*comm, first)).filter(|_| hosts[first] != hosts[*process]) else {
                continue;
            };
            // Threads may open their files in another order.
            for (one, other) in names.iter().zip(leading).filter(|(one, other)| last_part(**one) == last_part(**other))
            {
                groups.join(*one, *other);
            }
        }
    }
}

/// Openings of an inode under one name.
#[derive(Clone, Copy, Debug)]
struct NameOfInode {
    /// Begin of the first and of the last.
    span_ns: [i128; 2],
    /// The first one created the file.
    is_created: bool,
}

impl NameOfInode {
    fn add(&mut self, other: Self) {
        if other.span_ns[0] < self.span_ns[0] {
            (self.span_ns[0], self.is_created) = (other.span_ns[0], other.is_created);
        }
        self.span_ns[1] = self.span_ns[1].max(other.span_ns[1]);
    }
}

/// Names of one file, as a forest: each refers to an earlier name, or to itself.
struct NameGroups(Vec<u32>);

impl NameGroups {
    fn root(&self, mut name: u32) -> u32 {
        while self.0[name as usize] != name {
            name = self.0[name as usize];
        }
        name
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}

/// A file before it was first opened, and what happened to it.
#[derive(Debug)]
struct FileHistory {
    path: String,
    fs_type: String,
    /// Before the first successful opening or deletion.
    first_state: Option<FileState>,
    /// First deletion through MPI.
    first_deletion_ns: Option<i128>,
    last_opening_ns: Option<i128>,
    /// Time when it was first found missing.
    removal_ns: Option<i128>,
}

impl FileHistory {
    fn new(names: &NameTable, root: u32) -> Self {
        let (path, name) = (&names.given[root as usize], &names.names.list[root as usize]);
        Self {
            path: path.clone(),
            fs_type: names.fs_types.get(name).cloned().unwrap_or_default(),
            first_state: None,
            first_deletion_ns: None,
            last_opening_ns: None,
            removal_ns: None,
        }
    }

    fn set_earlier_state(&mut self, state: FileState) {
        if self.first_state.is_none_or(|known| state.begin_ns < known.begin_ns) {
            self.first_state = Some(state);
        }
    }

    /// Creation time of a file that existed at its first opening.
    fn created_ns(&self) -> Option<i128> {
        let first = self.first_state.filter(|first| first.size_bytes.is_some_and(|bytes| bytes > 0))?;
        // A file that was deleted earlier has existed before.
        let is_first = self.first_deletion_ns.is_none_or(|deleted_ns| first.begin_ns < deleted_ns);
        Some(first.begin_ns - i128::from(first.unchanged_ns?)).filter(|_| is_first)
    }

    /// Time when it was found missing, if MPI did not remove it and it was not opened again.
    fn removed_ns(&self) -> Option<i128> {
        let gone_ns = self.removal_ns.filter(|_| self.first_deletion_ns.is_none())?;
        self.last_opening_ns.is_none_or(|last| last < gone_ns).then_some(gone_ns)
    }
}

/// Files of the program.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    /// Number of the file by name.
    numbers: HashMap<String, u32>,
    files: Vec<FileHistory>,
    /// Files and the communicators that opened them.
    pub(super) opened_with: HashSet<(u32, u32)>,
}

impl FileTable {
    /// Numbers of the file that a call opens or changes by name, and of that to which it renames it.
    pub(super) fn files_of(&self, call: &Call) -> (Option<u32>, Option<u32>) {
        let number = |name: Option<&str>| name.and_then(|name| self.numbers.get(name)).copied();
        (number(name_of(call)), number(call.target_path.as_deref()))
    }

    /// Files with their state before they were first used. Times are relative to `zero_ns`.
    pub(super) fn list(&self, zero_ns: i128) -> Vec<OpenedFile> {
        let mut comms = vec![0_u32; self.files.len()];
        self.opened_with.iter().for_each(|(file, _)| comms[*file as usize] += 1);
        let since_start = |ns: Option<i128>| u64::try_from(ns? - zero_ns).ok();
        let opened = |(file, comms): (&FileHistory, u32)| OpenedFile {
            path: file.path.clone(),
            size_bytes: file.first_state.and_then(|first| u64::try_from(first.size_bytes?).ok()),
            fs_type: file.fs_type.clone(),
            // With several communicators, the one that recreates the file is unknown.
            created_ns: since_start(file.created_ns()).filter(|_| comms == 1),
            removed_ns: since_start(file.removed_ns()).filter(|_| comms == 1),
        };
        self.files.iter().zip(comms).map(opened).collect()
    }

    /// True if the size of a file before its first use, or its absence, was recorded.
    pub(super) fn is_size_known(&self, file: usize) -> bool {
        self.files.get(file).and_then(|file| file.first_state).is_some_and(|first| first.size_bytes.is_some())
    }
}
