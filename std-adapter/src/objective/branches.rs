//! The order of a piece's tables when it is a forest of pairwise factors, as core's [`pairwise`] wants them.
//!
//! [`pairwise`]: gibbsite_core::infer::tree::pairwise

use gibbsite_core::infer::tree::pairwise::Branch;

/// The tables of a forest: first one for each variable, parents before children, then one for each variable that has a parent.
#[derive(Debug)]
pub(super) struct Order {
    /// The variables of each table, ascending.
    pub(super) scopes: Vec<Vec<u32>>,
    pub(super) branches: Vec<Branch>,
}

impl Order {
    /// Breadth first from the first variable of each tree. `None` if a table has more than two variables, or there is a cycle. The scopes are
    /// ascending and differ from each other.
    pub(super) fn new(cards: &[u32], scopes: &[Vec<u32>]) -> Option<Self> {
        let mut neighbours: Vec<Vec<u32>> = vec![vec![]; cards.len()];
        for scope in scopes {
            match scope[..] {
                [_] => {}
                [a, b] => {
                    neighbours[a as usize].push(b);
                    neighbours[b as usize].push(a);
                }
                _ => return None,
            }
        }
        // Of each variable: its parent, or itself if it is a root; and its place in the order.
        let mut parent = vec![u32::MAX; cards.len()];
        let mut place = vec![0u32; cards.len()];
        let mut order: Vec<u32> = Vec::with_capacity(cards.len());
        for root in 0..cards.len() as u32 {
            if parent[root as usize] != u32::MAX {
                continue;
            }
            parent[root as usize] = root;
            let mut next = order.len();
            order.push(root);
            while let Some(&v) = order.get(next) {
                place[v as usize] = next as u32;
                next += 1;
                let above = parent[v as usize];
                for &u in neighbours[v as usize].iter().filter(|&&u| u != above) {
                    if parent[u as usize] != u32::MAX {
                        return None;
                    }
                    parent[u as usize] = v;
                    order.push(u);
                }
            }
        }
        let mut tables: Vec<Vec<u32>> = order.iter().map(|&v| vec![v]).collect();
        let (mut unary, mut pair) = (0u32, 0u32);
        let mut branches = Vec::with_capacity(order.len());
        for &v in &order {
            let (arity, p) = (cards[v as usize], parent[v as usize]);
            let is_root = p == v;
            let parent_arity = if is_root { 0 } else { cards[p as usize] };
            branches.push(Branch {
                arity,
                unary,
                parent: (!is_root).then(|| place[p as usize]),
                pair,
                parent_arity,
                parent_first: p < v,
            });
            unary = unary.checked_add(arity)?;
            pair = pair.checked_add(arity.checked_mul(parent_arity)?)?;
            if !is_root {
                tables.push(vec![p.min(v), p.max(v)]);
            }
        }
        Some(Self { scopes: tables, branches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_and_wide_tables_are_refused() {
        let cards = [2, 3, 2];
        assert!(Order::new(&cards, &[vec![0, 1], vec![1, 2], vec![0, 2]]).is_none());
        assert!(Order::new(&cards, &[vec![0, 1, 2]]).is_none());
        let order = Order::new(&cards, &[vec![1], vec![1, 2]]).unwrap();
        assert_eq!(order.scopes, [vec![0], vec![1], vec![2], vec![1, 2]]);
        assert_eq!(order.branches[2].parent, Some(1));
        assert_eq!((order.branches[2].unary, order.branches[2].parent_arity), (5, 3));
    }
}
