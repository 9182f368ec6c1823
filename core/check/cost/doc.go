// Package cost bounds what a program takes before it runs.
package cost
