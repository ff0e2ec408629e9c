//! What tests share: a hermetic environment, a fixed clock, fault points and the store story.
