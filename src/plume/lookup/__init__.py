"""How rows find out whether their key was selected."""
