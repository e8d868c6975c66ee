//! The tree of names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iolab_model::error::Errno;

use super::node::Node;
use crate::api::block::NodeId;

/// Not a directory, is one, is not empty (asm-generic/errno-base.h, asm-generic/errno.h).
pub(super) const ENOTDIR: Errno = Errno(20);
pub(super) const EISDIR: Errno = Errno(21);
pub(super) const ENOTEMPTY: Errno = Errno(39);

/// A name or a path is too long (asm-generic/errno.h).
const ENAMETOOLONG: Errno = Errno(36);
/// Longest name and path, its end included (include/uapi/linux/limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

/// Refuses what no kernel would look for.
fn check_lengths(path: &Path) -> Result<(), Errno> {
    let text = path.as_os_str().as_encoded_bytes();
    let is_long = |name: &[u8]| name.len() > NAME_MAX;
    if text.len() <= NAME_MAX {
        return Ok(());
    }
    if text.len() >= PATH_MAX || text.split(|byte| *byte == b'/').any(is_long) {
        return Err(ENAMETOOLONG);
    }
    Ok(())
}

/// Index of the device in the tables of files: its pages are metadata.
pub(super) const DEVICE: u32 = 0;
/// Index of the root directory.
pub(super) const ROOT: u32 = 1;

/// All nodes, and the names that lead to them.
#[derive(Debug)]
pub(super) struct Tree {
    /// The first is no file but the device; its pages are metadata.
    nodes: Vec<Node>,
    free: Vec<u32>,
    by_id: BTreeMap<NodeId, u32>,
    root: PathBuf,
    /// The same as text: names are looked for often.
    root_text: Box<str>,
}

/// A name in a directory that exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located<'a> {
    pub directory: u32,
    pub name: &'a str,
}

impl Tree {
    pub fn new(root: PathBuf, id: NodeId) -> Self {
        // The device has a node number that no file has.
        let device = Node::new(NodeId(u32::MAX), false);
        let nodes = vec![device, Node::new(id, true)];
        let root_text = root.to_string_lossy().trim_end_matches('/').into();
        Self { nodes, free: Vec::new(), by_id: BTreeMap::from([(id, ROOT)]), root, root_text }
    }

    pub fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    /// Indices of all nodes that exist, the device left out.
    pub fn indices(&self) -> impl Iterator<Item = u32> {
        self.by_id.values().copied()
    }

    pub fn of_id(&self, id: NodeId) -> Option<u32> {
        if id == NodeId(u32::MAX) { Some(DEVICE) } else { self.by_id.get(&id).copied() }
    }

    /// The node of a path.
    pub fn find(&self, path: &Path) -> Result<u32, Errno> {
        check_lengths(path)?;
        match path.to_str() {
            Some(text) if text.starts_with(&*self.root_text) => self.walk(text),
            _ => self.walk(&self.spelt_out(path)?),
        }
    }

    /// A path that is spelt in another way than the root's, as one below it.
    fn spelt_out(&self, path: &Path) -> Result<String, Errno> {
        let below = path.strip_prefix(&self.root).map_err(|_| Errno::ENOENT)?;
        let below = below.to_str().ok_or(Errno::ENOENT)?;
        Ok(format!("{}/{below}", self.root_text))
    }

    fn walk(&self, path: &str) -> Result<u32, Errno> {
        let below = path.strip_prefix(&*self.root_text).ok_or(Errno::ENOENT)?;
        if !below.is_empty() && !below.starts_with('/') {
            return Err(Errno::ENOENT);
        }
        let mut at = ROOT;
        for part in below.split('/').filter(|part| !part.is_empty() && *part != ".") {
            let children = self.node(at).children.as_ref().ok_or(ENOTDIR)?;
            at = *children.get(part).ok_or(Errno::ENOENT)?;
        }
        Ok(at)
    }

    /// The directory of a path, and the name in it.
    pub fn locate<'a>(&self, path: &'a Path) -> Result<Located<'a>, Errno> {
        let plain = path.to_str().and_then(|text| text.rsplit_once('/')).filter(|(above, name)| {
            above.starts_with(&*self.root_text) && !matches!(*name, "" | "." | "..")
        });
        check_lengths(path)?;
        let (directory, name) = if let Some((above, name)) = plain {
            (self.walk(above)?, name)
        } else {
            let name = path.file_name().and_then(|name| name.to_str()).ok_or(Errno::EINVAL)?;
            (self.find(path.parent().ok_or(Errno::EINVAL)?)?, name)
        };
        if self.node(directory).children.is_none() {
            return Err(ENOTDIR);
        }
        Ok(Located { directory, name })
    }

    pub fn child(&self, at: Located<'_>) -> Option<u32> {
        self.node(at.directory).children.as_ref()?.get(at.name).copied()
    }

    /// A new node with a name.
    pub fn add(&mut self, at: Located<'_>, id: NodeId, is_directory: bool) -> u32 {
        let node = Node::new(id, is_directory);
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            index
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.by_id.insert(id, index);
        self.attach(at, index);
        index
    }

    pub fn attach(&mut self, at: Located<'_>, index: u32) {
        let children = self.nodes[at.directory as usize].children.as_mut();
        children.expect("located in a directory").insert(at.name.into(), index);
    }

    pub fn detach(&mut self, at: Located<'_>) {
        if let Some(children) = &mut self.nodes[at.directory as usize].children {
            children.remove(at.name);
        }
    }

    /// A node is gone for good.
    pub fn release(&mut self, index: u32) {
        let id = self.node(index).id;
        self.by_id.remove(&id);
        self.free.push(index);
    }

    /// Names and nodes of all files, for listings.
    pub fn files(&self) -> BTreeMap<PathBuf, u32> {
        let mut all = BTreeMap::new();
        let mut pending = vec![(self.root.clone(), ROOT)];
        while let Some((path, index)) = pending.pop() {
            for (name, &child) in self.node(index).children.iter().flatten() {
                let path = path.join(&**name);
                if self.node(child).children.is_some() {
                    pending.push((path, child));
                } else {
                    all.insert(path, child);
                }
            }
        }
        all
    }
}
