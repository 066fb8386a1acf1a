"""The paper's M, each as four operations."""
