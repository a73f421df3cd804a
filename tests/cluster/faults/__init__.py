"""Contains the cases of faults_test.py. Each file contains the cases for one kind of
disturbance."""
