"""Defines the cases of faults_test.py. Each file defines the cases for one kind of disturbance."""
